"""Callers: permissions, roles, principals and admissions. It knows nothing of jobs, NATS or HTTP."""
