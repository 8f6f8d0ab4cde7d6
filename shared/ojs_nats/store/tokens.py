"""Looking at the tokens of a queue without taking them."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from ojs_nats.errors import unavailable
from ojs_nats.store.api import call
from ojs_nats.store.link import Link
from ojs_nats.store.names import StoreConfig

__all__ = ["Tokens"]

_NOT_FOUND: Final = 10037


class Tokens:
    """Reads the ready stream through its leader."""

    def __init__(self, link: Link, config: StoreConfig) -> None:
        self._link = link
        self._config = config

    async def first_at(self, queue: str, priority: int) -> int | None:
        """When the first of the tokens of a queue and priority was stored (server time, Unix ms); None if there are none.

        A token is there until its claim is stored. Raises OjsError backend_unavailable.
        """
        times = [await self._first_at(self._config.ready(queue, priority, front=front)) for front in (True, False)]
        return min((at for at in times if at is not None), default=None)

    async def _first_at(self, subject: str) -> int | None:
        request = {"seq": 1, "next_by_subj": subject}
        answer = await call(self._link, f"STREAM.MSG.GET.{self._config.ready_stream}", request)
        if error := answer.get("error"):
            if error.get("err_code") == _NOT_FOUND:
                return None
            raise unavailable(f"NATS refused a read of tokens: {error.get('description')}")
        return int(datetime.fromisoformat(answer["message"]["time"]).timestamp() * 1000)
