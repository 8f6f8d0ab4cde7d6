"""A shop with FastAPI and SQLite: `uvicorn fastapi_shop:shop`."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from fastapi import FastAPI, HTTPException
from jobs import app, send_receipt
from outbox import MOST, TABLE, push, row
from pydantic import BaseModel

from ojs_nats import OjsError

log = logging.getLogger(__name__)
DATABASE = os.environ.get("DATABASE", "shop.sqlite")
committed = asyncio.Event()


class Order(BaseModel):
    item: str
    email: str


@contextmanager
def transaction() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(DATABASE)
    try:
        with connection:  # commits, or rolls back what raises
            yield connection
    finally:
        connection.close()


async def relay() -> None:
    """Push what is in the outbox: when something was committed, and once a second for what another process has left."""
    while True:
        committed.clear()
        try:
            while rows := await asyncio.to_thread(waiting):
                pushed, refused = await push(app, rows)
                await asyncio.to_thread(delete, pushed)
                for reason in refused:
                    log.error("a job of the outbox was refused: %s", reason)
                if not pushed:
                    break
        except OjsError as reason:
            log.warning("the outbox waits: %s", reason)
        try:
            async with asyncio.timeout(1.0):
                await committed.wait()
        except TimeoutError:
            pass


def waiting() -> list[Any]:
    with transaction() as connection:
        return connection.execute("SELECT id, type, args FROM outbox ORDER BY id LIMIT ?", (MOST,)).fetchall()


def delete(ids: list[str]) -> None:
    with transaction() as connection:
        connection.executemany("DELETE FROM outbox WHERE id = ?", [(job_id,) for job_id in ids])


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    with transaction() as connection:
        connection.execute(TABLE)
        connection.execute("CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, item TEXT, email TEXT)")
    async with app:
        relaying = asyncio.create_task(relay())
        yield
        relaying.cancel()


shop = FastAPI(lifespan=lifespan)


@shop.post("/orders", status_code=201)
async def order(new: Order) -> dict[str, Any]:
    def store() -> tuple[int | None, str]:
        with transaction() as connection:
            number = connection.execute("INSERT INTO orders (item, email) VALUES (?, ?)", (new.item, new.email)).lastrowid
            job = send_receipt.job(number or 0, new.email)
            connection.execute("INSERT INTO outbox VALUES (?, ?, ?)", row(job))
            if new.item == "sold out":
                raise HTTPException(409, "sold out")  # the order and its job are both gone
        return number, job.id

    number, job_id = await asyncio.to_thread(store)
    committed.set()
    return {"order": number, "job": job_id}
