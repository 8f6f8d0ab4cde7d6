"""Limits of keys and queues: permits, and the jobs that wait for one."""
