"""The HTTP form of jobs: bytes -> command, document -> bytes.

Every client dialect ends here. `enqueue` and `worker` read requests, `output` and `errors` write answers, `quirks` is the one
table of clients that need something else, `limits` everything that is bounded.
"""
