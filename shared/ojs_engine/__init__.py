"""The server's shared code, in layers: base, domain, telemetry, jetstream, store, read, operations, wire, runtime.

Each knows those before it, and none behind it (docs/architecture.md, Layers).
"""
