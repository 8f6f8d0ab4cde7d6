"""Queues and what bounds them: limits, starvation."""
