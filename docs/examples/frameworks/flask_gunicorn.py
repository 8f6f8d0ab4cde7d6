"""Settings of gunicorn, with hooks that push: in the process that forks the workers, and in those."""

from __future__ import annotations

from jobs import send_welcome

preload_app = True
workers = 3


def post_fork(_arbiter: object, _worker: object) -> None:  # in the new worker
    send_welcome.push_sync("forked@example.org")


def child_exit(_arbiter: object, _worker: object) -> None:  # in gunicorn's own process
    send_welcome.push_sync("exited@example.org")
