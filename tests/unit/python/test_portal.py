"""Calls without await where they can't be made."""

from __future__ import annotations

import asyncio

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
