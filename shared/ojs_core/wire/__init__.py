"""The HTTP form of jobs: bytes -> command, document -> bytes.

Every client dialect ends here. `enqueue` and `worker` read requests, `output` and `errors` write answers, `clients` is the one
table of clients that need something else. What is bounded is in `ojs_core.base.payload_limits`.
"""
