"""Lifecycle events: what they say, and which transition is which."""
