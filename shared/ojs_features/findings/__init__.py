"""Findings: the server says what is wrong with the system, and why a job is where it is."""
