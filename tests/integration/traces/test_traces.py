"""What operations send to NATS and answer over HTTP is what their golden files say."""

from __future__ import annotations

import difflib
import os
from pathlib import Path
from typing import Any, Final

import pytest

from integration.samples import from_durables
from integration.traces.conftest import Bench
from integration.traces.operations import OPERATIONS
from support.nats import NatsServer

GOLDEN: Final = Path(__file__).parent / "golden"
RENEWS: Final = "OJS_TRACES"
"""The variable by which `script/traces` has the files written."""
OWN: Final[dict[str, dict[str, Any]]] = {
    "keys": {"key": "the-key-of-this-test"},
    "durables": {"timings": from_durables()},
}
"""What the gateways are given that aren't shared."""


@pytest.mark.parametrize("name", [name for name, operation in OPERATIONS.items() if operation.system == "shared"])
async def test_an_operation_sends_and_answers_what_its_trace_says(bench: Bench, name: str) -> None:
    await _held_to_its_trace(bench, name)


@pytest.mark.parametrize("name", [name for name, operation in OPERATIONS.items() if operation.system != "shared"])
async def test_so_does_one_with_its_own_gateway(shared_nats_server: NatsServer, own_namespace: str, name: str) -> None:
    bench = Bench(shared_nats_server.url, own_namespace, **OWN[OPERATIONS[name].system])
    async with bench.serving():
        await _held_to_its_trace(bench, name)


def test_each_trace_is_of_an_operation() -> None:
    assert {file.stem for file in GOLDEN.iterdir()} == set(OPERATIONS)


async def _held_to_its_trace(bench: Bench, name: str) -> None:
    operation = OPERATIONS[name]
    async with bench.traced(*operation.services) as trace:
        await operation.take(trace)
    found = trace.text(operation.title)
    file = GOLDEN / f"{name}.txt"
    if os.environ.get(RENEWS) == "renew":
        file.parent.mkdir(exist_ok=True)
        file.write_text(found, encoding="utf-8")
        return
    kept = file.read_text(encoding="utf-8") if file.exists() else ""
    difference = difflib.unified_diff(kept.splitlines(), found.splitlines(), file.name, "now", lineterm="", n=4)
    if kept != found:
        told = "\n".join(difference)
        advice = f"If this change is meant, run `script/traces {name}` and commit the file."
        pytest.fail(f"{told}\n\n{advice}", pytrace=False)
