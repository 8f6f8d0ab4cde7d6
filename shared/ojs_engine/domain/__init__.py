"""The rules of Open Job Spec as structs and pure functions: no I/O, no clock, no HTTP, no NATS.

What happens is decided here: from a record, a command and a moment to the next record, or to a refusal (`OjsError`).
"""
