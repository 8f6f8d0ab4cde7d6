"""Queues and what shares and bounds them: pools, limits, starvation, scheduling."""
