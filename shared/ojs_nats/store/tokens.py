"""What tokens say, and looking at those of a queue without taking them."""

from __future__ import annotations

from ojs_nats.store.api import message
from ojs_nats.store.link import Link
from ojs_nats.store.names import StoreConfig

__all__ = ["Tokens", "read_token", "token_of"]


def token_of(job_id: str, word: str | None, replaces: int) -> bytes:
    """The token of a job: the record that it goes with has the same word, and was to replace the revision `replaces`."""
    return f"{job_id} {word} {replaces}".encode()


def read_token(data: bytes) -> tuple[str, str, int]:
    """What `token_of` was given. Raises ValueError for what is no token."""
    job_id, word, replaces = data.decode().split(" ")
    return job_id, word, int(replaces)


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
        found = await message(self._link, self._config.ready_stream, {"seq": 1, "next_by_subj": subject}, "tokens")
        return None if found is None else found.at
