"""For the tests of applications: jobs in memory, run at once or when a test says so, and a real server for each test run.

```python
def test_sign_up_sends_a_welcome(ojs_fake: Fake) -> None:
    sign_up("ada@example.org")
    ojs_fake.assert_enqueued(send_email, to="ada@example.org")
```

pytest finds the fixtures `ojs_fake`, `ojs_inline`, `ojs_server` and `ojs_worker` by itself. Guide: docs/testing-python.md.
"""

from __future__ import annotations

from ojs_nats.testing._clock import Clock
from ojs_nats.testing._fake import Drained, Fake, fake, inline
from ojs_nats.testing._server import Server, working

__all__ = ["Clock", "Drained", "Fake", "Server", "fake", "inline", "working"]
