"""The keys that a process knows by heart, and who shows one."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Final
from weakref import WeakSet

from ojs_engine.access.admission import ENVIRONMENT, FOREVER, Admission, key_id_of, unauthenticated
from ojs_engine.access.principal import Principal
from ojs_features.access.allowances import UNLIMITED, Allowance, KeyLimits
from ojs_features.access.keys import Key, environment_key, make_key
from ojs_features.access.sessions import Session, end_of, is_sealed, opened, sealed

_MOST_SHOWN: Final = 4_096
"""Right headers and cookies that are remembered. One key may be written in several ways."""
_MOST_ENDED: Final = 100_000
"""Sessions that are known as ended; beyond, the first is forgotten."""
_MOST_CHARS: Final = 4_096
_NOBODY: Final = make_key("nobody", "custom").key
"""What a token of an unknown id is compared with, so that it takes as long as one of a known id."""


class KnownKeys:
    """All keys, as of some milliseconds ago. `now` is the clock in Unix milliseconds, `token` the environment's key if any.

    `limits` are those of keys that name none of their own, counted by `clock`, which goes in seconds.
    """

    def __init__(
        self,
        now: Callable[[], int],
        token: str | None = None,
        *,
        limits: KeyLimits = UNLIMITED,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.now = now
        self._limits = limits
        self._clock = clock
        self._allowances: dict[str, Allowance] = {}
        self._own = {} if token is None else {ENVIRONMENT: environment_key(token)}
        self._keys: dict[str, Key] = dict(self._own)
        self._headers: dict[str, Admission] = {}
        self._cookies: dict[str, Admission] = {}
        self._let_in_by: defaultdict[str, WeakSet[Admission]] = defaultdict(WeakSet)
        """By key, all that somebody still goes by: a stream outlasts what is remembered for looking up."""
        self._ended: dict[tuple[str, str], int] = {}
        """Sessions that were ended before their time, by key and mark, with the Unix ms of their own end."""
        self._used: set[str] = set()
        self.any = token is not None
        """Whether there are keys, or have been.

        Those that have ended count: else the last one's end would open the door.
        """

    def replace(self, keys: Iterable[Key], *, others: bool = False) -> None:
        """Take what is stored now; `others` is whether there are more that can't be read, or were some."""
        before = self._keys
        self._keys = {key.id: key for key in keys} | self._own
        self.any = self.any or bool(self._keys) or others
        for key_id, key in before.items():
            self._tell_of(key, self._keys.get(key_id))
        for key in self._keys.values():
            for mark in key.ended_sessions:
                self._ended[key.id, mark] = end_of(mark) * 1_000
        self.look()
        for key_id, allowance in list(self._allowances.items()):
            if key_id not in self._keys or self._keys[key_id].ended(self.now()):
                del self._allowances[key_id]
            else:
                allowance.limits = self._keys[key_id].limits.filled(self._limits)

    def _tell_of(self, before: Key, key: Key | None) -> None:
        """Have what was let in by a key end with it, as it is now: one that was rotated goes on for a while."""
        if key is None or not before.counted_as(key):
            for admission in self._let_in_by.pop(before.id, ()):
                admission.over = True
        elif key.expires_at is not None and key.expires_at != before.expires_at:
            for admission in self._let_in_by.get(key.id, ()):
                admission.until = min(admission.until, key.expires_at)

    def look(self) -> None:
        """Tell those under way whose time has come, as that of an expired key, and forget all that is over."""
        now = self.now()
        self._ended = {ended: until for ended, until in self._ended.items() if until > now}
        if self._ended:
            for text, admission in self._cookies.items():
                admission.over = admission.over or self._has_ended(opened(text))
        for admitted in self._let_in_by.values():
            for admission in admitted:
                admission.over = admission.over or admission.until <= now
        for place in (self._headers, self._cookies):
            for text in [text for text, admission in place.items() if admission.over]:
                del place[text]

    def end_session(self, session: str) -> Session | None:
        """Take no more what is shown as this session; None if it is none. Others hear of it by the key's record."""
        said = opened(session)
        if said is None:
            return None
        while len(self._ended) >= _MOST_ENDED:
            del self._ended[next(iter(self._ended))]
        self._ended[said.key_id, said.mark] = said.ends_at_s * 1_000
        self.look()
        return said

    def _has_ended(self, said: Session | None) -> bool:
        return said is not None and (said.key_id, said.mark) in self._ended

    def of_header(self, authorization: str) -> Admission | None:
        """Return who was found to send this `Authorization` before; None for an unknown or ended one."""
        return self._remembered(self._headers, authorization)

    def of_cookie(self, session: str) -> Admission | None:
        """Return whose session this was found to be before; None for an unknown or ended one."""
        return self._remembered(self._cookies, session)

    def check_header(self, authorization: str) -> Admission:
        """Who sends this `Authorization`. Raises OjsError unauthenticated."""
        scheme, _, token = authorization.strip().partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token or len(authorization) > _MOST_CHARS:
            raise unauthenticated("Authorization must be `Bearer` and a key")
        key = self._keys.get(key_id_of(token) or ENVIRONMENT) or self._own.get(ENVIRONMENT)
        if not (key or _NOBODY).is_of(token) or key is None:
            raise unauthenticated("the key is not known here")
        return self._let_in(key, FOREVER, self._headers, authorization)

    def check_cookie(self, session: str) -> Admission:
        """Whose session it is. Raises OjsError unauthenticated."""
        said = None if len(session) > _MOST_CHARS else opened(session)
        key = None if said is None else self._keys.get(said.key_id)
        if said is None or key is None or not is_sealed(said, key):
            raise unauthenticated("the session is none of this server's")
        if self._has_ended(said):
            raise unauthenticated("the session was ended: sign in again", canonical="TOKEN_EXPIRED")
        if said.ends_at_s * 1_000 <= self.now():
            raise unauthenticated("the session is over: sign in again", canonical="TOKEN_EXPIRED")
        return self._let_in(key, said.ends_at_s * 1_000, self._cookies, session)

    def session(self, principal: Principal) -> tuple[str, int] | None:
        """A sealed session for a key's holder, and its end in Unix seconds; None if the key is gone meanwhile."""
        key = self._keys.get(principal.id)
        return None if key is None else sealed(key, self.now())

    def take_used(self, coarse_ms: int) -> list[str]:
        """The ids of stored keys that were used since the last call, but for those of which that was noted lately."""
        used, self._used = self._used - self._own.keys(), set()
        since = self.now() - coarse_ms
        return [key_id for key_id in used if key_id in self._keys and (self._keys[key_id].used_at or 0) < since]

    def _remembered(self, place: dict[str, Admission], text: str) -> Admission | None:
        found = place.get(text)
        if found is None or found.until <= self.now():
            return None
        self._used.add(found.principal.id)
        return found

    def _let_in(self, key: Key, until: int, place: dict[str, Admission], text: str) -> Admission:
        """Let the key's holder in, until then and no longer than the key lasts. Raises OjsError unauthenticated."""
        if key.revoked_at is not None:
            raise unauthenticated(f"key {key.name!r} was revoked", canonical="TOKEN_EXPIRED")
        if key.ended(self.now()):
            raise unauthenticated(f"key {key.name!r} has expired", canonical="TOKEN_EXPIRED")
        if len(place) >= _MOST_SHOWN:
            place.clear()
        until = until if key.expires_at is None else min(until, key.expires_at)
        place[text] = admission = Admission(key.principal, until, self._allowance(key))
        self._let_in_by[key.id].add(admission)
        self._used.add(key.id)
        return admission

    def _allowance(self, key: Key) -> Allowance:
        """The one of all that a key's holders ask for."""
        found = self._allowances.get(key.id)
        if found is None:
            found = self._allowances[key.id] = Allowance(key.id, key.name, key.limits.filled(self._limits), self._clock)
        return found
