"""Who may do what: permissions, roles, principals and their keys (docs/adr/072).

It knows nothing of jobs, NATS or HTTP. `ojs_engine.store.keys` stores the keys, `ojs_gateway.door` asks here at every request.
"""
