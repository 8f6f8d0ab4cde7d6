"""What awaits where no event loop of asyncio runs, as under trio, which drives coroutines by itself."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ojs_nats import App, Client, Worker
from ojs_nats.jobs import JobRequest

app = App("http://127.0.0.1:9")


@app.job("mail.send")
async def send(to: str) -> None: ...


CALLS: dict[str, Callable[[], Coroutine[Any, Any, Any]]] = {
    "a definition's push": lambda: send.push("ada@example.org"),
    "an app's close": app.close,
    "a client's push over HTTP": lambda: Client("http://127.0.0.1:9").push(JobRequest("mail.send")),
    "a client's push over NATS": lambda: Client("nats://127.0.0.1:9").push(JobRequest("mail.send")),
    "a client's question": lambda: Client("http://127.0.0.1:9").jobs.get("01a22341-3b3b-7e3f-a7df-6cf5b4ed13e3"),
    "a wait for a job": lambda: Client("http://127.0.0.1:9").jobs.wait("01a22341-3b3b-7e3f-a7df-6cf5b4ed13e3"),
    "a wait for a workflow": lambda: Client("http://127.0.0.1:9").workflows.wait("none"),
    "a worker": lambda: Worker(app).run(),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_awaits_says_that_it_needs_asyncio(call: str) -> None:
    with pytest.raises(RuntimeError, match=r"no event loop of asyncio runs here: .*push_sync.*trio"):
        CALLS[call]().send(None)


def test_an_app_has_no_client_where_no_loop_runs() -> None:
    with pytest.raises(RuntimeError, match=r"no event loop of asyncio runs here: .*app\.sync"):
        _ = app.client
