"""Calls without await where they can't be made."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from ojs_nats import _portal


async def answer() -> int:
    return 42


def test_a_call_within_the_loop_of_calls_is_refused_in_a_sentence() -> None:
    async def within() -> int:
        return _portal.call(answer())

    with pytest.raises(RuntimeError, match="a call without await can't be made by what runs in the loop of such calls"):
        _portal.call(within())
    assert _portal.call(answer()) == 42


def test_a_call_in_a_thread_of_the_loop_of_calls_is_made() -> None:
    async def beside() -> int:
        return await asyncio.to_thread(lambda: _portal.call(answer()))

    assert _portal.call(beside()) == 42


async def test_a_call_within_another_loop_is_made() -> None:
    assert _portal.call(answer()) == 42


OF_GEVENT = """\
from gevent import monkey, spawn
monkey.patch_all()
from ojs_nats import _portal

async def answer():
    return 42

async def within():
    return _portal.call(answer())

tasks = [spawn(_portal.call, answer()) for _ in range(9)]
print([_portal.call(answer()) for _ in range(3)], [task.get() for task in tasks])
try:
    _portal.call(within())
except RuntimeError as refusal:
    print(refusal)
"""


def test_greenlets_have_one_thread_in_common_and_calls_in_the_loop_are_told_from_the_others() -> None:
    command = [sys.executable, "-W", "error", "-c", OF_GEVENT]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    answers, refusal = ended.stdout.splitlines()
    assert (answers, ended.stderr) == (f"{[42] * 3} {[42] * 9}", "")
    assert refusal.startswith("a call without await can't be made by what runs in the loop of such calls")
