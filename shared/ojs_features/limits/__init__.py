"""Limits of keys and queues."""
