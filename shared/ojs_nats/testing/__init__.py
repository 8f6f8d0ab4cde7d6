"""Tests of applications: jobs in memory, run at once or when a test says so, or a real server.

```python
def test_sign_up_sends_a_welcome(ojs_fake: Fake) -> None:
    sign_up("ada@example.org")
    ojs_fake.assert_enqueued(send_email, to="ada@example.org")
```

pytest finds the fixtures `ojs_fake`, `ojs_inline`, `ojs_server` and `ojs_worker` by itself. Guide: docs/testing-python.md.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ojs_nats.testing._clock import Clock
    from ojs_nats.testing._fake import Drained, Fake, fake, inline
    from ojs_nats.testing._server import Server, working

__all__ = ["Clock", "Drained", "Fake", "Server", "fake", "inline", "working"]

if not TYPE_CHECKING:  # type checkers know each name by its import
    from ojs_nats._lazy import names as _names

    __getattr__ = _names(
        __name__,
        {
            "Clock": "_clock",
            "Drained": "_fake",
            "Fake": "_fake",
            "Server": "_server",
            "fake": "_fake",
            "inline": "_fake",
            "working": "_server",
        },
    )


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
