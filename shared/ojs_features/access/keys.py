"""Keys: what a caller shows to be let in, and what is stored of it (docs/adr/072).

A secret has 256 random bits, so nobody guesses it, however quick the hash is. scrypt with n=16 meets SEC-020 to the letter,
and a wrong key costs some 40 µs, not a thread for a while.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ojs_engine.access.admission import ENVIRONMENT, PREFIX
from ojs_engine.access.permissions import PERMISSIONS, ROLES, Permission, Role
from ojs_engine.access.principal import Principal
from ojs_engine.base.numbers import At
from ojs_features.access.allowances import BY_SETTINGS, UNLIMITED, KeyLimits

_ID_BYTES: Final = 6
_SECRET_BYTES: Final = 32
_SALT_BYTES: Final = 16


class Key(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A key as it is stored: who it stands for, and a hash of it. `op` names its last change.

    `used_at` is within a quarter of an hour, and may be missing. `replaced_by` is the id of the key that it was rotated to.
    """

    id: str
    name: str
    role: Role
    permissions: tuple[Permission, ...] = ()
    queues: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    limits: KeyLimits = BY_SETTINGS
    salt: str
    hash: str
    created_at: At = 0
    expires_at: At | None = None
    revoked_at: At | None = None
    used_at: At | None = None
    replaced_by: str | None = None
    ended_sessions: tuple[str, ...] = ()
    """Sessions that were ended before their time (`sessions.py`), the last of them."""
    op: str = ""

    @property
    def principal(self) -> Principal:
        """Who shows it."""
        return Principal(
            id=self.id,
            name=self.name,
            role=self.role,
            permissions=ROLES[self.role] | frozenset(self.permissions),
            queues=self.queues,
            types=self.types,
        )

    def ended(self, now: int) -> bool:
        """Whether it lets nobody in any more."""
        return self.revoked_at is not None or (self.expires_at is not None and self.expires_at <= now)

    def is_of(self, token: str) -> bool:
        """Whether it is the stored form of a token; takes as long for each that isn't."""
        return hmac.compare_digest(_hash(token, self.salt), self.hash)

    def counted_as(self, other: Key) -> bool:
        """Whether both let in the same caller, whatever its limits and for however long."""
        return self._whom() == other._whom()

    def _whom(self) -> Key:
        own = replace(self, used_at=None, limits=BY_SETTINGS, expires_at=None, replaced_by=None)
        return replace(own, ended_sessions=(), op="")


class NewKey(NamedTuple):
    """A key, and the token that is shown once."""

    key: Key
    token: str


def make_key(
    name: str,
    role: Role,
    *,
    permissions: Sequence[Permission] = (),
    queues: Sequence[str] = (),
    types: Sequence[str] = (),
    limits: KeyLimits = BY_SETTINGS,
    expires_at: int | None = None,
) -> NewKey:
    """A new key with a new secret."""
    key_id = secrets.token_hex(_ID_BYTES)
    token = f"{PREFIX}{key_id}_{secrets.token_hex(_SECRET_BYTES)}"
    given = tuple(one for one in PERMISSIONS if one in permissions)
    stored = _stored(
        token,
        key_id,
        name,
        role,
        permissions=given,
        queues=tuple(queues),
        types=tuple(types),
        limits=limits,
        expires_at=expires_at,
    )
    return NewKey(stored, token)


def renewed(key: Key, now: int) -> NewKey:
    """A key for the same as another one and for as long a time, with a secret of its own."""
    return make_key(
        key.name,
        key.role,
        permissions=key.permissions,
        queues=key.queues,
        types=key.types,
        limits=key.limits,
        expires_at=None if key.expires_at is None else now + key.expires_at - key.created_at,
    )


def environment_key(token: str) -> Key:
    """The key of the gateway's environment, which may do everything, and as much of it as its many users ask for.

    Its salt is no secret, and the same in all gateways.
    """
    salt = hashlib.sha256(b"OJS_API_KEY").hexdigest()
    return _stored(token, ENVIRONMENT, ENVIRONMENT, "admin", salt=salt, limits=UNLIMITED)


def _stored(
    token: str,
    key_id: str,
    name: str,
    role: Role,
    *,
    permissions: tuple[Permission, ...] = (),
    queues: tuple[str, ...] = (),
    types: tuple[str, ...] = (),
    limits: KeyLimits = BY_SETTINGS,
    expires_at: int | None = None,
    salt: str | None = None,
) -> Key:
    salt = salt or secrets.token_hex(_SALT_BYTES)
    return Key(
        id=key_id,
        name=name,
        role=role,
        permissions=permissions,
        queues=queues,
        types=types,
        limits=limits,
        salt=salt,
        hash=_hash(token, salt),
        expires_at=expires_at,
    )


def _hash(token: str, salt: str) -> str:
    return hashlib.scrypt(token.encode(errors="surrogateescape"), salt=bytes.fromhex(salt), n=16, r=8, p=1, dklen=32).hex()
