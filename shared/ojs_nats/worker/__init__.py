"""Runs jobs: `worker` fetches, runs and reports, `heartbeats` says that it lives, `lifecycle` when it stops.

`outcome` is what the end of a handler means for its job, `context` what a handler is given, `process` the command.
"""
