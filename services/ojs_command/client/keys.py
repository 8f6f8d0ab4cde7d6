"""`ojs-nats keys`."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import product
from typing import Final

from ojs_command.client.arguments import count, duration, seconds, words
from ojs_command.client.keys_on_nats import KeysOnNats
from ojs_command.client.on_nats import add_nats_options, namespace_of
from ojs_command.client.output import at
from ojs_command.client.parser import CommandParser, add_action
from ojs_command.client.problems import UsageProblem
from ojs_command.client.session import Session
from ojs_engine.access.permissions import PERMISSIONS, ROLES
from ojs_nats.models.keys import Key, KeyLimits, MadeKey
from ojs_nats.operations.keys import Keys

_CREATE_EXAMPLES: Final = """\
  ojs-nats keys create --name ops --role admin --nats nats://127.0.0.1:4222   the first one, before there is a server
  ojs-nats keys create --name shop --role producer --queues 'shop.*'
  ojs-nats keys create --name import --role producer --pushes-per-second 500
  ojs-nats keys create --name deploy --role custom --permissions enqueue,work --expires 90d

The token is printed once, alone on standard output: put it where your secrets are.
"""


_LIMIT_EXAMPLES: Final = """\
  ojs-nats keys limit ID --pushes-per-second 100 --streams 5
  ojs-nats keys limit ID                                       all as the gateways are set

Limits that aren't named are as the gateways are set. What is under way goes on.
"""
_LIMITS: Final = {
    "pushes_per_second": "jobs that it may push a second through each gateway",
    "streams": "event streams and WebSockets that it may have open at each",
    "waiting": "fetches and requests for results that may wait at each",
}
_COLUMNS: Final = ("id", "name", "role", "state", "queues", "types", "limits", "last used", "expires")


def define(parser: CommandParser) -> None:
    actions = parser.actions("list")
    listed = add_action(actions, "list", "list keys, without their secrets", _list, examples="  ojs-nats keys\n")
    listed.add_argument("--all", action="store_true", help="those that have ended, too")
    create = add_action(actions, "create", "make a key, and print it once", _create, examples=_CREATE_EXAMPLES)
    create.add_argument("--name", required=True, help="whose it is")
    create.add_argument("--role", required=True, choices=tuple(ROLES))
    named = f"of the role custom, by commas: {', '.join(PERMISSIONS)}"
    create.add_argument("--permissions", type=words, default=[], metavar="NAMES", help=named)
    create.add_argument("--queues", type=words, default=[], metavar="PATTERNS", help="narrow it to these, by commas ['*']")
    create.add_argument("--types", type=words, default=[], metavar="PATTERNS", help="narrow it to these job types ['*']")
    create.add_argument("--expires", type=seconds, metavar="TIME", help="end it after so long, such as 90d [never]")
    limit = add_action(actions, "limit", "change what a key may ask of each gateway", _limit, examples=_LIMIT_EXAMPLES)
    for one, (name, what) in product((create, limit), _LIMITS.items()):
        option = f"--{name.replace('_', '-')}"
        one.add_argument(option, type=count, metavar="N", help=f"{what}; 0 for any number [as gateways are set]")
    rotate = add_action(
        actions,
        "rotate",
        "make a new key in place of one, which goes on for a while",
        _rotate,
        examples="  ojs-nats keys rotate ID --overlap 2h\n",
    )
    rotate.add_argument("--overlap", type=duration, default="24h", metavar="TIME", help="[24h]")
    revoke = add_action(actions, "revoke", "let a key let nobody in any more", _revoke, examples="  ojs-nats keys revoke ID\n")
    revoke.add_argument("--yes", action="store_true", help="don't ask")
    for one in (limit, rotate, revoke):
        one.add_argument("key", metavar="ID")
    for one in actions.choices.values():
        add_nats_options(one, "work on NATS itself, without a server: for the first key, or the last")


def _limits_of(given: argparse.Namespace) -> KeyLimits:
    return KeyLimits(**{name: getattr(given, name) for name in _LIMITS})


async def _list(session: Session, given: argparse.Namespace) -> None:
    async with _keys(session, given) as keys:
        found = await keys.list(every=given.all)
    empty = "No key lets anybody in. Where there never was one, everybody who reaches the server may do everything."
    session.out.listed(found, _COLUMNS, _row, empty=empty)


def _row(key: Key) -> tuple[object, ...]:
    narrowed, limits = (key.queues or None, key.types or None), _told_limits(key.limits)
    return (key.id, key.name, key.role, key.state, *narrowed, limits, at(key.used_at), at(key.expires_at))


async def _create(session: Session, given: argparse.Namespace) -> None:
    expires_at = None if given.expires is None else datetime.fromtimestamp(datetime.now(UTC).timestamp() + given.expires, UTC)
    async with _keys(session, given) as keys:
        made = await keys.create(
            given.name,
            given.role,
            permissions=given.permissions,
            queues=given.queues,
            types=given.types,
            limits=_limits_of(given),
            expires_at=expires_at,
        )
    _tell(session, made)


async def _limit(session: Session, given: argparse.Namespace) -> None:
    async with _keys(session, given) as keys:
        changed = await keys.limit(given.key, _limits_of(given))
    told = _told_limits(changed.limits) or "as the gateways are set"
    session.out.done(f"Limits of key {changed.id} ({changed.name}): {told}.", changed)


def _told_limits(limits: KeyLimits) -> str | None:
    """In few words; None if all are as gateways are set."""
    named = {"pushes a second": limits.pushes_per_second, "streams": limits.streams, "waiting": limits.waiting}
    told = [f"{'any number of' if most == 0 else most} {name}" for name, most in named.items() if most is not None]
    return ", ".join(told) or None


async def _rotate(session: Session, given: argparse.Namespace) -> None:
    async with _keys(session, given) as keys:
        made = await keys.rotate(given.key, overlap=given.overlap)
    _tell(session, made)


async def _revoke(session: Session, given: argparse.Namespace) -> None:
    session.confirm(f"Revoke key {given.key}? Whoever uses it is turned away at once.", confirmed=given.yes)
    async with _keys(session, given) as keys:
        gone = await keys.revoke(given.key)
    lines = [f"Key {gone.id} ({gone.name}) lets nobody in any more."]
    if gone.webhooks:
        lines.append(f"Webhooks that it had brought events to are paused: {', '.join(gone.webhooks)}.")
    if gone.crons:
        lines.append(f"Cron entries that it registered go on: {', '.join(gone.crons)}.")
        lines.append("Pause them by `ojs-nats cron pause NAME`.")
    session.out.done(" ".join(lines), gone)


def _tell(session: Session, made: MadeKey) -> None:
    if session.out.as_json:
        session.out.json(made)
        return
    session.out.note(f"Key {made.key.id} ({made.key.name}) has the role {made.key.role}. Its token is shown this once:")
    session.out.raw(made.token)


@asynccontextmanager
async def _keys(session: Session, given: argparse.Namespace) -> AsyncIterator[Keys | KeysOnNats]:
    """Those of the server, or those on NATS."""
    if given.on_nats is None:
        if given.namespace:
            raise UsageProblem("--namespace says where to look in NATS: name that by --nats, too.")
        yield session.client.keys
        return
    async with KeysOnNats.at(given.on_nats, namespace_of(given)) as keys:
        yield keys
    if keys.untold is not None:
        session.out.note(keys.untold)
