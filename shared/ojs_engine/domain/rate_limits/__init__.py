"""Limits as pure functions: policies, permits, and what has become of who holds one (ojs-rate-limiting)."""
