"""The users of the page on the binding over NATS: the page and the tests can't say different things."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from support.nats import NatsServer

_PAGE: Final = Path(__file__).parents[2] / "docs" / "nats-binding.md"
_BLOCK: Final = re.compile(r"```\n(authorization \{.*?)```", re.DOTALL)
_ACCOUNTS: Final = re.compile(r"```\n(accounts \{.*?)```", re.DOTALL)
_LIST: Final = re.compile(r"users = (\[.*\])\n\}", re.DOTALL)
_SERVICES: Final = re.compile(r'(\{ user: "ojs", password: \w+), permissions: \{.*?\n\n', re.DOTALL)

_text: Final = re.sub(r"\$\w+_PASSWORD", "secret", _PAGE.read_text(encoding="utf-8"))
USERS: Final[str] = _BLOCK.findall(_text)[0]
"""The block of nats-server's configuration; each password is `secret`."""


def operations_of(user: str) -> list[str]:
    """Return the subjects of the API that a user of the page may publish to."""
    [listed] = re.findall(rf'user: "{user}".*?publish: \[(.*?)\]', USERS, re.DOTALL)
    return re.findall(r'"(ojs\.api\.[^"]+)"', listed)


def without_answering_user() -> str:
    """Return the users where the services' one has all rights, and answers clients as well."""
    text, found = _SERVICES.subn(r"\1 }\n\n", USERS)
    assert found == 1, "the page has a user ojs with permissions"
    return text


def in_namespace(name: str) -> str:
    """Return the users of a system in this namespace, as the page says to make them."""
    return USERS.replace('"ojs.', f'"{name}.').replace("$KV.ojs.", f"$KV.{name}.")


def in_accounts() -> str:
    """Return the users in an account of their own, and the page's account of a client, whose user is `till`."""
    [accounts], [users] = _ACCOUNTS.findall(_text), _LIST.findall(USERS)
    answering = users.replace('"_INBOX_admin.>"]', '"_INBOX_admin.>", "_R_.>"]', 1)
    found: str = accounts.replace("[ … ]", answering, 1)
    return found


@contextmanager
def guarded_nats(folder: Path, users: str = USERS) -> Iterator[NatsServer]:
    """A nats-server with these users."""
    with NatsServer(folder, more=users) as server:
        yield server


def url_of(server: NatsServer, user: str) -> str:
    """Return the address of a user of the page, with the inbox that it may listen to."""
    return f"nats://{user}:secret@127.0.0.1:{server.port}?inbox_prefix=_INBOX_{user}"
