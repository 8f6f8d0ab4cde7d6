"""NATS users of the roles in the tests: with `--nats-users` each nats-server has them, and each service its own."""

from __future__ import annotations

import os
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

from ojs_command.nats_conf import seeds, users_section
from ojs_engine.jetstream.grants import ANSWERING, Team, all_grants
from ojs_engine.jetstream.subjects import DEFAULT_NAMESPACE, StoreConfig
from ojs_features.all import GRANTS
from support.forked import OJS_NATS, completed

VARIABLE: Final = "OJS_TEST_NATS_USERS"
STORAGE: Final = ("--storage-limit", str(4 << 30))
"""nats-server's max_file_store, which users of roles can't find out."""
_ALL: Final = "everything:secret"
_HAS_ALL: Final = '    { user: "everything", password: "secret" }\n'


def wanted() -> bool:
    """Return whether tests run with users."""
    return os.environ.get(VARIABLE) == "1"


@cache
def folder() -> Path:
    """The seeds of this process's servers."""
    return Path(tempfile.mkdtemp(prefix="ojs-nats-users-"))


def section(
    *teams: Team,
    namespace: str = DEFAULT_NAMESPACE,
    unheard: tuple[str, str] | None = None,
    unsaid: tuple[str, str] | None = None,
) -> str:
    """Return the users of all roles, and one with all rights: for tests that look into NATS themselves.

    `unheard` is a role and a subject that its user may not subscribe to, `unsaid` one that it may not publish on.
    """
    rows = all_grants(StoreConfig(namespace=namespace), GRANTS, teams or (Team(),), test_mode=True)
    rows[ANSWERING].publish.append("_INBOX.>")
    if unheard is not None:
        rows[unheard[0]].subscribe.remove(unheard[1])
    if unsaid is not None:
        rows[unsaid[0]].publish.remove(unsaid[1])
    return users_section(rows, seeds(folder(), rows)).replace("  ]\n}", f"{_HAS_ALL}  ]\n}}")


def all_rights(address: str) -> str:
    """Return the URL of the user with all rights; `address` is a host and a port."""
    return f"nats://{_ALL}@{address}"


def by_role(url: str, role: str = "{role}", namespace: str = DEFAULT_NAMESPACE) -> str:
    """Return what services are given: the addresses of a URL of `all_rights`, with a seed for each role."""
    named = url.replace(f"{_ALL}@", "")
    return f"{named}?inbox_prefix=_INBOX_{namespace}_{role}&creds={folder()}/{role}.nk"


def make_streams(url: str) -> None:
    """Do what an operator does once."""
    found = completed([*OJS_NATS, "setup"], os.environ | {"OJS_NATS": by_role(url)})
    assert found.returncode == 0, found.stderr


def options(url: str, service: str, *, with_users: bool) -> tuple[str, ...]:
    """Return the options for a service that works with this NATS, `with_users` as its role's user."""
    if not with_users or _ALL not in url:
        return ("--nats", url)
    answering = ("--nats-api-url", by_role(url, ANSWERING)) if service == "gateway" else ()
    return ("--nats", by_role(url), *STORAGE, *answering)
