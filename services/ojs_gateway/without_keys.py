"""The guard of a gateway that was installed without keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

import structlog

from ojs_engine.access.admission import Admission, unauthenticated
from ojs_engine.base.errors import OjsError
from ojs_engine.base.problems import StartupProblem, Unreachable
from ojs_engine.jetstream.subjects import ANY
from ojs_engine.store.callers import has_had_keys
from ojs_runtime.addresses import is_loopback

if TYPE_CHECKING:
    from ojs_engine.store.store import Store
    from ojs_runtime.settings import Settings

log = structlog.get_logger(__name__)


class WithoutKeys:
    """The guard that serves this machine alone, and only a system that has never had a key."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._changed: Callable[[], None] = lambda: None
        self.callers = _Nobody(store.clock.now)
        subjects = [store.config.key(ANY)]
        self._stored = store.watches.add("keys", subjects, self._heard, stays_at_reset=True)

    def pause(self, _address: str) -> float:
        """Let no answer wait: there is no key to be guessed."""
        return 0.0

    async def start(self, changed: Callable[[], None]) -> None:
        """Raises StartupProblem where requests have to show a key, since none is known here."""
        settings = self._settings
        if settings.api_key is not None or settings.api_key_file is not None:
            raise _refused("api_key is set")
        if not (is_loopback(settings.host) or settings.insecure):
            raise _refused(f"others than this machine reach {settings.host}")
        self._changed = changed
        try:
            await self._stored.begin()
            had = await has_had_keys(self._store.bucket)
        except OjsError as error:
            raise Unreachable(f"Whether this system has keys can't be read from NATS: {error.message}.") from None
        if had:
            raise _refused("this system has keys")
        log.warning("everybody who reaches this address may do everything", host=settings.host)

    async def stop(self) -> None:
        """Do nothing: the store ends its copy of records by itself."""

    def _heard(self) -> None:
        if self._stored.entries and not self.callers.any:
            log.error("somebody has made a key, which this gateway can't know: it refuses every request", door="shut")
            self.callers.any = True
            self._changed()


class _Nobody:
    """The callers that are known: none."""

    def __init__(self, now: Callable[[], int]) -> None:
        self.now = now
        self.any = False

    def of_header(self, _authorization: str) -> Admission | None:
        return None

    def of_cookie(self, _session: str) -> Admission | None:
        return None

    def check_header(self, _authorization: str) -> NoReturn:
        raise _unknown()

    def check_cookie(self, _session: str) -> NoReturn:
        raise _unknown()


def _unknown() -> OjsError:
    return unauthenticated("this server was installed without keys, and knows none")


def _refused(why: str) -> StartupProblem:
    return StartupProblem(
        f"{why}, and this server was installed without keys, so that it can't tell who may do what: install it with keys."
    )
