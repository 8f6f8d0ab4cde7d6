"""The NATS binding: the operations by request and reply (docs/nats-binding.md, docs/adr/054)."""
