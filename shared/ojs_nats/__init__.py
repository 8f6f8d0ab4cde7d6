"""Push jobs to an OJS server, and run them.

```python
app = App()

@app.job("email.send", queue="email", retry=Retry(5), timeout="30s")
async def send_email(ctx: JobContext, to: str, template: str = "welcome") -> dict[str, str]: ...

handle = await send_email.push("ada@example.org")
print(await handle.result(timeout="1m"))
```

`ojs-nats worker app.jobs` runs the jobs of a module. Guide: docs/python.md. Reference: docs/reference/python.md.

Other public names are in modules by subject: `errors`, `options`, `jobs`, `client`, `sync`, `workflows`, `worker`,
`operations` (requests to the server), `models` (its answers), `middleware`, `webhooks`, `tls`, `testing`. A name or module
that begins with an underscore is internal.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ojs_nats.app import App
    from ojs_nats.client import Client
    from ojs_nats.dependencies import Depends
    from ojs_nats.errors import JobFailed, OjsError
    from ojs_nats.jobs import Job
    from ojs_nats.options import RateLimit, Retry, Unique
    from ojs_nats.webhooks import verify_webhook
    from ojs_nats.worker import JobContext, Snooze, Worker
    from ojs_nats.workflows import batch, chain, group

__all__ = [
    "App",
    "Client",
    "Depends",
    "Job",
    "JobContext",
    "JobFailed",
    "OjsError",
    "RateLimit",
    "Retry",
    "Snooze",
    "Unique",
    "Worker",
    "batch",
    "chain",
    "group",
    "verify_webhook",
]

_MODULES = {
    "App": "app",
    "Client": "client",
    "Depends": "dependencies",
    "Job": "jobs",
    "JobContext": "worker",
    "JobFailed": "errors",
    "OjsError": "errors",
    "RateLimit": "options",
    "Retry": "options",
    "Snooze": "worker",
    "Unique": "options",
    "Worker": "worker",
    "batch": "workflows",
    "chain": "workflows",
    "group": "workflows",
    "verify_webhook": "webhooks",
}
"""Where each name is defined. A module is imported when one of its names is used: what starts `ojs-nats` needs none."""

_BY_SUBJECT = (
    "app",
    "chains",
    "client",
    "definitions",
    "dependencies",
    "errors",
    "jobs",
    "middleware",
    "models",
    "operations",
    "options",
    "sync",
    "testing",
    "tls",
    "webhooks",
    "worker",
    "workflows",
)

if not TYPE_CHECKING:  # type checkers know each name by its import

    def __getattr__(name: str) -> object:
        from importlib import import_module  # noqa: PLC0415  # here, since it takes longer than all the rest

        if name in _BY_SUBJECT:  # after `import ojs_nats` alone: `ojs_nats.errors.NotFoundError`
            return import_module(f"ojs_nats.{name}")
        module = _MODULES.get(name)
        if module is None:
            return import_module("ojs_nats._deprecated").moved(name)
        found = globals()[name] = getattr(import_module(f"ojs_nats.{module}"), name)
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
