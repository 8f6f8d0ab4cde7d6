"""Runs jobs: `worker` says when they are fetched and when it stops (by the states of `lifecycle`), `places` how
many, `fetching` gets them, `execution` runs their handlers, `reports` tells how they ended, `heartbeats` that the
worker lives.

`attempts` is a job that runs, `context` what its handler is given, `outcome` what the handler's end means,
`process` the command.
"""
