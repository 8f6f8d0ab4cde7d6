"""Pools: queues that share what a fetch gets (ojs-fair-scheduling)."""
