"""Unique jobs: the lock of a fingerprint, and who may take it."""
