"""Exact counts of what an operation causes: messages and bytes on NATS, calls of Python functions."""
