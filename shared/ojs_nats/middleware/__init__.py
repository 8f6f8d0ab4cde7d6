"""Middleware to add to an app's chains.

```python
app.execution.add(Logging())
app.execution.add(ErrorReporting(lambda error, ctx: sentry_sdk.capture_exception(error)))
TraceContext().install(app)
Encryption({"2026-11": key}, current="2026-11").install(app)
```
"""

from __future__ import annotations

from ojs_nats.chains import EnqueueNext, ExecutionNext
from ojs_nats.middleware.encryption import Encryption, Undecodable
from ojs_nats.middleware.error_reporting import ErrorReporting
from ojs_nats.middleware.logging import Logging
from ojs_nats.middleware.metrics import Metrics
from ojs_nats.middleware.timeout import Timeout
from ojs_nats.middleware.trace_context import TraceContext

__all__ = [
    "Encryption",
    "EnqueueNext",
    "ErrorReporting",
    "ExecutionNext",
    "Logging",
    "Metrics",
    "Timeout",
    "TraceContext",
    "Undecodable",
]
