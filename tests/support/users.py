"""NATS users of the roles in the tests: with `--nats-users` each nats-server has them, and each service its own."""

from __future__ import annotations

import os
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

from ojs_command.nats_conf import seeds, users_section
from ojs_core.jetstream.grants import Team, all_grants
from ojs_core.jetstream.subjects import StoreConfig

VARIABLE: Final = "OJS_TEST_NATS_USERS"
_ALL: Final = "everything:secret"
_HAS_ALL: Final = '    { user: "everything", password: "secret" }\n'


def wanted() -> bool:
    """Return whether tests run with users."""
    return os.environ.get(VARIABLE) == "1"


@cache
def folder() -> Path:
    """The seeds of this process's servers."""
    return Path(tempfile.mkdtemp(prefix="ojs-nats-users-"))


def section(*teams: Team) -> str:
    """Return the users of all roles, and one with all rights: for tests that look into NATS themselves."""
    rows = all_grants(StoreConfig(), teams or (Team(),), test_mode=True)
    return users_section(rows, seeds(folder(), rows)).replace("  ]\n}", f"{_HAS_ALL}  ]\n}}")


def all_rights(address: str) -> str:
    """Return the URL of the user with all rights; `address` is a host and a port."""
    return f"nats://{_ALL}@{address}"


def by_role(url: str, role: str = "{role}") -> str:
    """Return what services are given: the addresses of a URL of `all_rights`, with a seed for each role."""
    named = url.replace(f"{_ALL}@", "")
    return f"{named}?inbox_prefix=_INBOX_ojs_{role}&creds={folder()}/{role}.nk"


def services_url(url: str) -> str:
    """Return the URL for services where tests run with users, else the same."""
    return by_role(url) if wanted() and _ALL in url else url
