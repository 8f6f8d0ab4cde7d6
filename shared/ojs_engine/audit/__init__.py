"""The audit: who did what to the system, and who was refused (ojs-security §11, docs/adr/076).

`entry` says what is kept of an act, `repeats` keeps floods short, `trail` stores entries and `reading` reads them. It knows
nothing of jobs or HTTP. `ojs_gateway.auditing` writes here, `ojs_gateway.handlers.audit` reads.
"""
