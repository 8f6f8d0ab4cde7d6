"""The log of the index is moved into the file beside the work, and stays short."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ojs_index.sqlite.checkpoints import CheckpointBounds, Checkpoints, Pages, checkpoint
from ojs_index.sqlite.model import Model
from support.waiting import eventually
from unit.index.samples import STREAM, job, seen

FEW = 20
MANY = 100
BOUNDS = CheckpointBounds(moved_together=FEW, long=MANY)


@pytest.fixture
def model(tmp_path: Path) -> Iterator[Model]:
    model = Model(tmp_path / "index.sqlite")
    model.attach(STREAM, 0)
    yield model
    model.close()


def save(model: Model, number: int) -> None:
    """Some pages, of jobs that are not in the index yet."""
    first = model.applied + 1
    model.apply([seen(n, job(f"job-{n}", queue=f"queue-{n}")) for n in range(first, first + number)])
    model.save()


async def kept_up_until_it_fails(found: Checkpoints) -> None:
    while True:
        await found.keep_up()
        await asyncio.sleep(0)


async def test_the_log_is_moved_once_it_has_enough_while_more_is_taken_up(tmp_path: Path, model: Model) -> None:
    found = Checkpoints(tmp_path / "index.sqlite", BOUNDS)
    await found.keep_up()
    await found.ended()
    before = found.pages()
    while found.pages().written - before.written < FEW:
        save(model, 5)
    model.apply([seen(model.applied + 1, job("open"))])  # a transaction that is not at its end
    await found.keep_up()
    await eventually(lambda: found.pages().moved == found.pages().written)
    assert found.pages().written >= FEW
    assert not model.saved
    model.save()
    await found.ended()


async def test_a_short_log_is_left_alone(tmp_path: Path, model: Model) -> None:
    found = Checkpoints(tmp_path / "index.sqlite", BOUNDS)
    await found.keep_up()
    await found.ended()
    save(model, 1)  # the log starts anew
    moved = found.pages().moved
    await found.keep_up()
    await found.ended()
    assert found.pages().moved == moved


async def test_a_log_that_is_written_without_a_pause_starts_anew(tmp_path: Path, model: Model) -> None:
    found = Checkpoints(tmp_path / "index.sqlite", BOUNDS)
    largest = 0
    for _ in range(60):
        save(model, 10)
        largest = max(largest, found.pages().written)
        await found.keep_up()
    assert MANY <= largest < 2 * MANY
    await found.ended()


async def test_what_a_checkpoint_met_is_raised_the_next_time_once(tmp_path: Path, model: Model) -> None:
    full = True

    def make(path: Path) -> None:
        if full:
            raise sqlite3.OperationalError("database or disk is full")
        checkpoint(path)

    found = Checkpoints(tmp_path / "index.sqlite", BOUNDS, make)
    save(model, FEW)
    with pytest.raises(sqlite3.OperationalError, match="full"):
        await kept_up_until_it_fails(found)
    full = False
    await found.keep_up()
    await found.ended()
    assert found.pages().moved == found.pages().written


async def test_one_that_is_under_way_is_waited_for_even_by_whoever_was_cancelled(tmp_path: Path, model: Model) -> None:
    let_go = threading.Event()

    def held(_path: Path) -> None:
        let_go.wait(10)

    found = Checkpoints(tmp_path / "index.sqlite", BOUNDS, held)
    save(model, FEW)
    await found.keep_up()
    waiting = asyncio.create_task(found.ended())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    again = asyncio.create_task(found.ended())
    await asyncio.sleep(0)
    assert not again.done()
    let_go.set()
    await again


async def test_an_index_in_memory_has_no_log(tmp_path: Path) -> None:
    assert Checkpoints(tmp_path / "none").pages() == Pages(0, 0)
