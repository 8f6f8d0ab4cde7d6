"""The guard of one gateway: the keys that it knows, and whether it may serve without any (docs/adr/072)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

import structlog

from ojs_engine.access.admission import PREFIX
from ojs_engine.base.errors import OjsError
from ojs_engine.base.loops import start_loop, stop_loop
from ojs_engine.base.problems import StartupProblem, Unreachable
from ojs_engine.store.store import Store
from ojs_features.access.allowances import STREAMS, WAITING, KeyLimits
from ojs_features.access.keys import Key
from ojs_features.access.known_keys import KnownKeys
from ojs_features.access.slowing import Slowing, SlowingTimings
from ojs_features.access.store import Keys
from ojs_link.timings import Timings
from ojs_runtime.addresses import is_loopback
from ojs_runtime.setting_readers import api_key
from ojs_runtime.settings import Settings

log = structlog.get_logger(__name__)

_LONG_ENOUGH: Final = 32


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


class Gatekeeper:
    """Follows the keys: the guard of one gateway. Raises StartupProblem for a key file that can't be read."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._timings = store.bucket.timings(AccessTimings)
        self._keys = store.of(Keys)
        self._settings = settings
        limits = KeyLimits(pushes_per_second=settings.key_pushes_per_second, streams=STREAMS, waiting=WAITING)
        self.callers = KnownKeys(store.clock.now, _own_key(settings), limits=limits)
        self.pause = Slowing(timings=store.bucket.timings(SlowingTimings)).pause
        self._changed: Callable[[], None] = lambda: None
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, changed: Callable[[], None]) -> None:
        """Know the keys. Raises StartupProblem if there are none and others than this machine reach the gateway."""
        self._changed = changed
        await self._follow()
        settings = self._settings
        if settings.api_key or settings.api_key_file:
            log.warning("one key may do everything: keys for each client are made with 'ojs-nats keys create'")
        if not self.callers.any:
            if not (is_loopback(settings.host) or settings.insecure):
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
                await self._keys.follow(self._replace)
            except OjsError as error:
                if loop.time() >= deadline:
                    raise Unreachable(f"The keys of the API can't be read from NATS: {error.message}.") from None
                await asyncio.sleep(self._timings.again_s)
            else:
                return

    def _replace(self, keys: list[Key], others: bool) -> None:
        self.callers.replace(keys, others=others)
        self._changed()

    async def _look(self) -> None:
        await asyncio.sleep(self._timings.look_s)
        self.callers.look()
        self._changed()

    async def _mark(self) -> None:
        await self._keys.mark()
        await asyncio.sleep(self._timings.mark_s)

    async def _note_uses(self) -> None:
        await asyncio.sleep(self._timings.note_s)
        for key_id in self.callers.take_used(self._keys.timings.coarse_ms):
            await self._keys.note_use(key_id)


def _own_key(settings: Settings) -> str | None:
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
