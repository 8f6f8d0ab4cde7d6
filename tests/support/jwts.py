"""An operator, an account and users as JWTs, as `nsc` makes them."""

from __future__ import annotations

import base64
import json
import os
import time
from typing import Any, NamedTuple

import nkeys


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class _Key(NamedTuple):
    pair: nkeys.KeyPair
    seed: str
    public: str

    @classmethod
    def new(cls, prefix: int) -> _Key:
        seed = nkeys.encode_seed(os.urandom(32), prefix)
        pair = nkeys.from_seed(bytearray(seed))
        return cls(pair, seed.decode(), pair.public_key.decode())

    def signed(self, subject: str, name: str, claims: dict[str, Any]) -> str:
        head = {"typ": "JWT", "alg": "ed25519-nkey"}
        body = {"jti": name, "iat": int(time.time()), "iss": self.public, "name": name, "sub": subject, "nats": claims}
        text = ".".join(_encoded(json.dumps(part).encode()) for part in (head, body))
        return f"{text}.{_encoded(self.pair.sign(text.encode()))}"


def _account(limits: dict[str, Any]) -> dict[str, Any]:
    return {"type": "account", "version": 2, "limits": limits}


class Operator:
    """Signs one account, whose users are made on demand."""

    def __init__(self) -> None:
        self._operator = _Key.new(nkeys.PREFIX_BYTE_OPERATOR)
        self._account, self._system = (_Key.new(nkeys.PREFIX_BYTE_ACCOUNT) for _ in range(2))

    @property
    def section(self) -> str:
        """The section of nats-server's configuration."""
        of_all = {"type": "operator", "version": 2, "system_account": self._system.public}
        operator = self._operator.signed(self._operator.public, "operator", of_all)
        unbounded = dict.fromkeys(
            ("subs", "data", "payload", "imports", "exports", "conn", "leaf", "mem_storage", "disk_storage"), -1
        )
        limits = unbounded | {"wildcards": True, "streams": -1, "consumer": -1}
        accounts = {self._account.public: limits, self._system.public: limits | {"mem_storage": 0, "disk_storage": 0}}
        known = [f"{public}: {self._operator.signed(public, 'account', _account(own))}" for public, own in accounts.items()]
        return f"operator: {operator}\nresolver: MEMORY\nresolver_preload {{\n{chr(10).join(known)}\n}}\n"

    def creds(self) -> str:
        """Return a new user's .creds file."""
        user = _Key.new(nkeys.PREFIX_BYTE_USER)
        claims = {"type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1}
        jwt = self._account.signed(user.public, "user", claims)
        return (
            f"-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n"
            f"-----BEGIN USER NKEY SEED-----\n{user.seed}\n------END USER NKEY SEED------\n"
        )
