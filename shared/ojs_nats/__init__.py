"""Push jobs to an OJS server, and run them: what users import. Modules whose names begin with an underscore are internal.

```python
app = App()

@app.job("email.send", queue="email", retry=Retry(5), timeout="30s")
async def send_email(ctx: JobContext, to: str, template: str = "welcome") -> dict[str, str]: ...

handle = await send_email.push("ada@example.org")
print(await handle.result(timeout="1m"))
```

`ojs-nats worker app.jobs` runs what the modules that it is given define. Guide: docs/python.md.
"""

from __future__ import annotations

from ojs_nats._app import App
from ojs_nats._client import Client, JobHandle
from ojs_nats._definitions import JobDefinition
from ojs_nats._dependencies import Depends
from ojs_nats._errors import (
    Conflict,
    Duplicate,
    JobCancelled,
    JobFailed,
    Missing,
    NotEnqueued,
    NotFound,
    OjsError,
    QueueFull,
    Refused,
    ResultTimeout,
    Unavailable,
)
from ojs_nats._jobs import Job, JobError, NewJob
from ojs_nats._options import Retry, Unique
from ojs_nats.worker.context import JobContext
from ojs_nats.worker.outcome import DeadLetter, Discard, SoftTimeout
from ojs_nats.worker.worker import Worker

__all__ = [
    "App",
    "Client",
    "Conflict",
    "DeadLetter",
    "Depends",
    "Discard",
    "Duplicate",
    "Job",
    "JobCancelled",
    "JobContext",
    "JobDefinition",
    "JobError",
    "JobFailed",
    "JobHandle",
    "Missing",
    "NewJob",
    "NotEnqueued",
    "NotFound",
    "OjsError",
    "QueueFull",
    "Refused",
    "ResultTimeout",
    "Retry",
    "SoftTimeout",
    "Unavailable",
    "Unique",
    "Worker",
]
