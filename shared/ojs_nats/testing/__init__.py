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

_PLACES = {"_clock": ("Clock",), "_fake": ("Drained", "Fake", "fake", "inline"), "_server": ("Server", "working")}
"""Where the names are defined. A module is imported when one of its names is used: pytest loads the plugin beside them for each
project of an environment, also for those that have no jobs.
"""

if not TYPE_CHECKING:  # type checkers know each name by its import

    def __getattr__(name: str) -> object:
        from importlib import import_module  # noqa: PLC0415  # as in `ojs_nats`

        for place, names in _PLACES.items():
            if name in names:
                found = globals()[name] = getattr(import_module(f"ojs_nats.testing.{place}"), name)
                found.__module__ = __name__  # where people find it, in tracebacks and pickles, too
                return found
        raise AttributeError(f"module 'ojs_nats.testing' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
