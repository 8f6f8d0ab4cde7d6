"""Credentials for NATS in a file of four kinds, told apart by what is in it.

A `.creds` file (a JWT and a seed), an nkey seed, `user:password`, or a token. A token with a colon begins with another one.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

_MOST_BYTES: Final = 64 * 1024
_JWT: Final = re.compile(r"-----BEGIN NATS USER JWT-----\s+([\w-]+\.[\w-]+\.[\w-]+)\s")
_SEED: Final = re.compile(r"^(SU[A-Z2-7]{56})$", re.MULTILINE)
_LIKE_A_SEED: Final = re.compile(r"SU[A-Z2-7]{18,}")
_HEAD: Final = "BEGIN NATS USER JWT"
_NEEDS: Final = "nkeys isn't installed, which {} needs: pip install 'ojs-nats[nkeys]'"


class LoginProblem(OSError):
    """Credentials that can't be used. The text names the file and the remedy, and shows nothing of what is in it.

    It is an OSError, so that a connection that is lost tries again, with the file as it is then.
    """


class Login(NamedTuple):
    """What a file says. Of its kind's members only those are there; `sign` signs the server's nonce."""

    user: str | None = None
    password: str | None = None
    token: str | None = None
    jwt: str | None = None
    public_key: str | None = None
    sign: Callable[[str], bytes] | None = None


def read_login(path: str) -> Login:
    """Read the file. Raises LoginProblem."""
    try:
        with Path(path).open("rb") as file:
            text = file.read(_MOST_BYTES + 1).decode()
    except OSError as error:
        raise LoginProblem(f"the credentials {path} can't be read: {error.strerror}") from None
    except UnicodeDecodeError:
        text = ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(text) > _MOST_BYTES or not lines:
        wanted = "a .creds file, an nkey seed (SU…), user:password or a token"
        raise LoginProblem(f"the credentials {path} are not of a kind that NATS has: it is one line or file of {wanted}")
    seed = _SEED.search("\n".join(lines))
    if _HEAD in text:
        jwt = _JWT.search(text)
        if jwt is None or seed is None:
            raise LoginProblem(f"the credentials {path} are half of a .creds file: it has a JWT and a seed")
        return _signed(path, seed[1])._replace(jwt=jwt[1], public_key=None)
    if seed is not None:
        return _signed(path, seed[1])
    if len(lines) > 1:
        raise LoginProblem(f"the credentials {path} have {len(lines)} lines: user:password and a token are one line")
    if _LIKE_A_SEED.fullmatch(lines[0]):
        raise _cut(path)
    user, colon, password = lines[0].partition(":")
    if not colon:
        return Login(token=lines[0])
    return Login(user=user, password=password) if user else Login(token=password)


def _signed(path: str, seed: str) -> Login:
    try:
        import nkeys  # noqa: PLC0415  # an extra
    except ModuleNotFoundError:
        raise LoginProblem(_NEEDS.format(path)) from None
    try:
        pair = nkeys.from_seed(bytearray(seed.encode()))
        public = pair.public_key.decode()
    except (nkeys.NkeysError, ValueError):
        raise _cut(path) from None
    return Login(public_key=public, sign=lambda nonce: base64.b64encode(pair.sign(nonce.encode())))


def _cut(path: str) -> LoginProblem:
    return LoginProblem(f"the credentials {path} have a seed that was cut, or mistyped: it is SU and 56 characters")


def new_seed() -> tuple[str, str]:
    """Return a new nkey's seed, which is its secret, and its public key. Raises LoginProblem."""
    try:
        import nkeys  # noqa: PLC0415  # an extra
        from nacl.utils import random  # noqa: PLC0415  # nkeys brings it
    except ModuleNotFoundError:
        raise LoginProblem(_NEEDS.format("a new nkey")) from None
    seed = nkeys.encode_seed(random(32), nkeys.PREFIX_BYTE_USER)
    return seed.decode(), nkeys.from_seed(bytearray(seed)).public_key.decode()
