"""The doors of one gateway: the keys that it knows, and who is let in without one (docs/adr/072)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Final

import structlog

from ojs_engine.access.keys import PREFIX, Key
from ojs_engine.access.known_keys import KnownKeys
from ojs_engine.access.slowing import Slowing
from ojs_engine.base.errors import OjsError
from ojs_engine.base.loops import start_loop, stop_loop
from ojs_engine.base.problems import StartupProblem, Unreachable
from ojs_gateway.http.door import Door, Keyless, Refused
from ojs_link.timings import Timings
from ojs_runtime.addresses import is_loopback
from ojs_runtime.setting_readers import api_key

if TYPE_CHECKING:
    from ojs_engine.store.keys import Keys
    from ojs_runtime.settings import NatsApiMode, Settings

log = structlog.get_logger(__name__)

_LONG_ENOUGH: Final = 32
_OVER_NATS: Final[dict[NatsApiMode, Keyless]] = {
    "auto": "while there are no keys",
    "open": "always",
    "keys": "never",
    "off": "never",
}


class AccessTimings(Timings, frozen=True, kw_only=True):
    """How often keys are looked after."""

    look_s: float = 1.0
    """Between two checks of what is known of keys."""
    mark_s: float = 1.0
    """Between two looks for keys that somebody of an earlier version has made."""
    note_s: float = 30.0
    """How often the last uses of keys are written down."""
    again_s: float = 0.25
    """The pause behind a look for keys at the start that NATS didn't answer."""


class Access:
    """Follows the keys, and has a door for each binding. Raises StartupProblem for a key file that can't be read."""

    def __init__(self, keys: Keys, known: KnownKeys, settings: Settings, refused: Refused, timings: AccessTimings) -> None:
        self._timings = timings
        self._keys = keys
        self._settings = settings
        self._beyond = not (is_loopback(settings.host) or settings.insecure)
        slowing = Slowing()
        self.known = known
        self.http = Door(known, "never" if self._beyond else "while there are no keys", slowing, refused)
        self.nats = Door(known, _OVER_NATS[settings.nats_api], slowing, refused)
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Know the keys. Raises StartupProblem if there are none and others than this machine reach the gateway."""
        await self._follow()
        settings = self._settings
        if settings.api_key or settings.api_key_file:
            log.warning("one key may do everything: keys for each client are made with 'ojs-nats keys create'")
        if not self.known.any:
            if self._beyond:
                raise StartupProblem(
                    f"there are no keys, and others than this machine reach {settings.host}: start without --host, make the "
                    "first key with 'ojs-nats keys create --role admin --name first' (or without a gateway, with --nats URL), "
                    "and start again; or set OJS_API_KEY. --insecure starts without keys."
                )
            if not is_loopback(settings.host):
                log.warning("everybody who reaches this address may do everything (--insecure)", host=settings.host)
            else:
                log.info("there are no keys: everybody on this machine may do everything", door="open")
        loops = {"door": self._look, "key-uses": self._note_uses, "key-mark": self._mark}
        self._tasks = [start_loop(name, turn, tell=False) for name, turn in loops.items()]

    async def stop(self) -> None:
        for task in self._tasks:
            await stop_loop(task)

    async def _follow(self) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._settings.connect_timeout
        while True:
            try:
                await self._keys.follow(self._changed)
            except OjsError as error:
                if loop.time() >= deadline:
                    raise Unreachable(f"The keys of the API can't be read from NATS: {error.message}.") from None
                await asyncio.sleep(self._timings.again_s)
            else:
                return

    def _changed(self, keys: list[Key], others: bool) -> None:
        self.known.replace(keys, others=others)
        self.http.look()
        self.nats.look()

    async def _look(self) -> None:
        await asyncio.sleep(self._timings.look_s)
        self.known.look()
        self.http.look()

    async def _mark(self) -> None:
        await self._keys.mark()
        await asyncio.sleep(self._timings.mark_s)

    async def _note_uses(self) -> None:
        await asyncio.sleep(self._timings.note_s)
        for key_id in self.known.take_used(self._keys.timings.coarse_ms):
            await self._keys.note_use(key_id)


def own_key(settings: Settings) -> str | None:
    """The key that this process was given, if any. Raises StartupProblem."""
    token = settings.api_key
    if settings.api_key_file is not None:
        token = _read(settings.api_key_file)
    if token is not None and len(token) < _LONG_ENOUGH and not token.startswith(PREFIX):
        log.warning("the key of this process is short, and may be guessed", characters=len(token))
    return token


def _read(path: Path) -> str | None:
    try:
        return api_key(path.expanduser().read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise StartupProblem(f"--api-key-file {path} can't be read: {reason}.") from None
