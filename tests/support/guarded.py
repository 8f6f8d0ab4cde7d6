"""A system that asks for keys, and clients of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self

import aiohttp

from support.cli import Cli
from support.described import Described
from support.system import System, send
from support.waiting import until

API: Final = "/ojs/v1"


class Guarded:
    """A system with keys: an admin's, and those of other roles once they are asked for."""

    def __init__(self, system: System, admin: str) -> None:
        self.system = system
        self.url = system.url
        self.tokens = {"admin": admin}
        self.described = Described.by(self.url)

    async def ask(
        self, method: str, path: str, body: object = None, *, token: str | None = None, **headers: str
    ) -> tuple[int, Any, Mapping[str, str]]:
        """Status, body and headers of an answer, which is held to the server's description."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if token is not None:
            sent["Authorization"] = f"Bearer {token}"
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, self.url + API + path, json=body, headers={"OJS-Version": "1.0"} | sent) as answer,
        ):
            text = await answer.read()
            return answer.status, json.loads(text) if text else None, answer.headers

    async def made(self, name: str, role: str, **more: Any) -> Any:
        """The answer to the making of a key."""
        status, answer, headers = await self.ask(
            "POST", "/admin/keys", {"name": name, "role": role, **more}, token=self.tokens["admin"]
        )
        assert (status, headers["Cache-Control"]) == (201, "no-store"), answer
        return answer

    async def token(self, role: str) -> str:
        """That of the role's key."""
        if role not in self.tokens:
            self.tokens[role] = (await self.made(role, role))["token"]
        return self.tokens[role]

    @classmethod
    @contextmanager
    def started(cls, folder: Path) -> Iterator[Self]:
        """One whose first key was made straight on NATS."""
        with System.started(folder, "--together") as system:
            said = Cli(folder)("keys", "create", "--name", "first", "--role", "admin", "--nats", system.nats_url_by_role)
            assert (said.code, len(said.out.split())) == (0, 1), said
            until(lambda: send("GET", f"{system.url}{API}/queues").status == 401)
            yield cls(system, said.out.strip())
