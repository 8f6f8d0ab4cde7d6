"""Checkpoints: what workers save of jobs, for the next attempt (docs/checkpoints.md)."""
