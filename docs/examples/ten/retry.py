"""A handler that fails twice is tried again, by its policy."""

from __future__ import annotations

from jobs import app, send

handle = send.push_sync("ada@example.org")
print(handle.result(timeout="30s"))
for attempt in app.sync.jobs.attempts(handle.id):
    print(attempt.attempt, attempt.state)
