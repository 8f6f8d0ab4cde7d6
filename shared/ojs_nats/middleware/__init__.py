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
from ojs_nats.middleware._encryption import Encryption, Undecodable
from ojs_nats.middleware._error_reporting import ErrorReporting
from ojs_nats.middleware._logging import Logging
from ojs_nats.middleware._metrics import Metrics
from ojs_nats.middleware._timeout import Timeout
from ojs_nats.middleware._trace_context import TraceContext

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

for _kind in (Encryption, ErrorReporting, Logging, Metrics, Timeout, TraceContext, Undecodable):
    _kind.__module__ = __name__  # where people find it, in tracebacks and pickles, too
