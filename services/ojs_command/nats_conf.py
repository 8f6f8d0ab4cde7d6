"""`ojs-nats nats-conf --users`: the users of nats-server's configuration, each with the rights of its role.

Their keys are nkeys: the configuration has the public ones alone, so it holds no secret. The seeds go to files.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ojs_core.base.problems import CANNOT_START, StartupProblem
from ojs_core.jetstream.grants import Grants, Team, all_grants
from ojs_core.jetstream.subjects import DEFAULT_NAMESPACE, StoreConfig, checked_namespace
from ojs_core.runtime.settings import NAMESPACE_ENV
from ojs_link.login import LoginProblem, new_seed, read_login

_FOLDER: Final = Path("nats-users")
_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,31}")
_QUEUE: Final = re.compile(r"[a-z0-9][a-z0-9.-]{0,254}")
_EPILOG: Final = """\
examples:
  ojs-nats nats-conf --users > users.conf                   users for all services, a client, a worker and the operator
  ojs-nats nats-conf --users --seeds /etc/ojs-nats/nats     their seeds there: gateway.nk, scheduler.nk …
  ojs-nats nats-conf --users --team shop=email,invoices --team media=thumbnails
                                                            a client and a worker for each team, held to its queues

Run it again after an upgrade: a seed that is there stays. Put the output into nats-server's configuration
(include "users.conf"), give each process its seed, and make the streams once, as the operator:
  ojs-nats setup --nats 'nats://nats.internal:4222?inbox_prefix=_INBOX_ojs_{role}' --nats-creds '/etc/ojs-nats/nats/{role}.nk'
"""


def add_nats_conf_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    purpose = "print users for nats-server's configuration, with the least rights that each needs"
    parser = commands.add_parser(
        "nats-conf",
        help=purpose,
        description=f"{purpose[0].upper()}{purpose[1:]}.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--users", action="store_true", required=True, help="the section of users")
    parser.add_argument("--seeds", type=Path, default=_FOLDER, metavar="FOLDER", help=f"where the secrets go [{_FOLDER}]")
    parser.add_argument(
        "--namespace",
        type=_namespace,
        default=os.environ.get(NAMESPACE_ENV, DEFAULT_NAMESPACE),
        metavar="NAME",
        help=f"of the system, as its services are started with [{NAMESPACE_ENV}, else {DEFAULT_NAMESPACE}]",
    )
    parser.add_argument("--account", metavar="NAME", help="put the users into an account of this name")
    parser.add_argument("--test-mode", action="store_true", help="with what --test-mode of the services needs")
    parser.add_argument(
        "--team",
        action="append",
        type=_team,
        metavar="NAME=QUEUE,…",
        help="a client and a worker for these queues, in place of those for all; any number of times",
    )


def print_users(given: argparse.Namespace) -> int:
    """The exit code."""
    try:
        rows = all_grants(StoreConfig(namespace=given.namespace), given.team or (Team(),), test_mode=given.test_mode)
        text = users_section(rows, seeds(given.seeds, rows), given.account)
    except (StartupProblem, LoginProblem) as problem:
        print(f"ojs-nats nats-conf: {problem}", file=sys.stderr)
        return CANNOT_START
    print(text, end="")
    return 0


def _namespace(text: str) -> str:
    try:
        return checked_namespace(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _team(text: str) -> Team:
    name, _, listed = text.partition("=")
    queues = tuple(queue for queue in listed.split(",") if queue)
    if not _NAME.fullmatch(name) or not queues or not all(map(_QUEUE.fullmatch, queues)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a team and its queues, like shop=email,invoices")
    return Team(name, queues)


def seeds(folder: Path, users: Mapping[str, object]) -> dict[str, str]:
    """Return the public key of each user; a seed that isn't in the folder is made, for its owner alone to read.

    Raises StartupProblem, LoginProblem.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return {user: _public_key(folder / f"{user}.nk") for user in users}
    except LoginProblem:
        raise
    except OSError as error:
        raise StartupProblem(f"{error.filename or folder} can't be written: {error.strerror}; name another --seeds") from None


def _public_key(file: Path) -> str:
    seed, public = new_seed()
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        known = read_login(str(file)).public_key
        if known is None:
            raise StartupProblem(f"{file} is no nkey seed: move it away, or name another --seeds") from None
        return known
    with os.fdopen(descriptor, "w", encoding="ascii") as written:
        written.write(f"{seed}\n")
    return public


def users_section(rows: Mapping[str, Grants], keys: Mapping[str, str], account: str | None = None) -> str:
    """Return the section of a configuration."""
    users = "\n".join(_user(user, row, keys[user]) for user, row in rows.items())
    head = "# Written by 'ojs-nats nats-conf --users'. The keys are public; the seeds are secret.\n"
    if account is None:
        return f"{head}authorization {{\n  users = [\n{users}\n  ]\n}}\n"
    return f"{head}accounts {{\n  {account}: {{ jetstream: enabled, users = [\n{users}\n  ] }}\n}}\n"


def _user(user: str, row: Grants, key: str) -> str:
    publish = _listed(row.publish)
    if row.not_publish:
        publish = f"{{ allow: {publish}, deny: {_listed(row.not_publish)} }}"
    subscribe = _listed(row.subscribe)
    return f"    # {user}\n    {{ nkey: {key}, permissions: {{\n      publish: {publish}\n      subscribe: {subscribe} }} }}"


def _listed(subjects: list[str]) -> str:
    return "[\n" + "".join(f"        {json.dumps(subject)}\n" for subject in subjects) + "      ]"
