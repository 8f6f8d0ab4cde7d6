"""Commands about jobs that are there."""
