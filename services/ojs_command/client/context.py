"""`ojs-nats context`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Final

import msgspec

from ojs_command.client.arguments import header, token_in
from ojs_command.client.context_file import Context, Contexts, read_contexts, write_contexts
from ojs_command.client.parser import CommandParser, add_action, files_of
from ojs_command.client.problems import UsageProblem
from ojs_command.client.session import Session
from ojs_link.address import masked
from ojs_nats._connect import authorized, url_of
from ojs_nats._tls import HTTPS, or_else
from ojs_nats.tls import Tls

_SET_EXAMPLES: Final = """\
  ojs-nats context set prod --server https://jobs.example.org --token-file prod.key
  ojs-nats context set prod --header 'Authorization: '           takes a header back
  ojs-nats context set prod --ca-file ca.pem                     trusts the CA of its certificate

The first one counts at once, others after 'ojs-nats context use NAME'. What isn't named stays as it is.
"""


class Named(msgspec.Struct, frozen=True):
    """A context as it may be shown."""

    name: str
    current: bool
    server: str
    headers: dict[str, str]
    tls: Tls


def define(parser: CommandParser) -> None:
    actions = parser.actions("list")
    add_action(actions, "list", "list contexts", _list, examples="  ojs-nats context\n")
    show = add_action(actions, "show", "show one, its headers masked", _show, examples="  ojs-nats context show prod\n")
    show.add_argument("name", nargs="?", metavar="NAME", help="[the current one]")
    use = add_action(actions, "use", "let one count from now on", _use, examples="  ojs-nats context use prod\n")
    put = add_action(actions, "set", "make one, or change it", _set, examples=_SET_EXAMPLES)
    delete = add_action(actions, "delete", "forget one", _delete, examples="  ojs-nats context delete prod\n")
    for one in (use, put, delete):
        one.add_argument("name", metavar="NAME")
    put.add_argument(
        "--header", action="append", type=header, default=[], metavar="'NAME: VALUE'", help="for every request; again for more"
    )
    for one in actions.choices.values():
        one.set_defaults(offline=True)


async def _list(session: Session, _given: argparse.Namespace) -> None:
    contexts = read_contexts(os.environ)
    found = [_named(contexts, name) for name in sorted(contexts.contexts)]
    empty = "No contexts yet: make one with 'ojs-nats context set NAME --server URL'."
    session.out.listed(found, ("name", "current", "server", "headers"), _row, empty=empty)


def _row(one: Named) -> tuple[object, ...]:
    return (one.name, one.current, one.server, list(one.headers))


async def _show(session: Session, given: argparse.Namespace) -> None:
    contexts = read_contexts(os.environ)
    name = given.name or contexts.current
    if not name:
        raise UsageProblem("No context is the current one: name one, or choose it with 'ojs-nats context use NAME'.")
    found = _named(contexts, name)
    session.out.one(
        found,
        [
            ("name", found.name),
            ("current", found.current),
            ("server", found.server),
            *((f"header {header}", value) for header, value in found.headers.items()),
            *((name.replace("_", " "), file) for name, file in msgspec.to_builtins(found.tls).items()),
        ],
    )


async def _use(session: Session, given: argparse.Namespace) -> None:
    contexts = read_contexts(os.environ)
    found = contexts.named(given.name)
    write_contexts(msgspec.structs.replace(contexts, current=given.name), os.environ)
    session.out.done(f"Commands ask {masked(found.server)} from now on.", _named(read_contexts(os.environ), given.name))
    if os.environ.get("OJS_URL"):
        session.out.note("OJS_URL is set, and goes before it: unset it for the context to count.")


async def _set(session: Session, given: argparse.Namespace) -> None:
    contexts = read_contexts(os.environ)
    before = contexts.contexts.get(given.name)
    server = getattr(given, "server", None) or (before.server if before else None)
    if server is None:
        raise UsageProblem(f"Context {given.name} is new and needs its server: --server URL.")
    try:
        url_of(server)
    except ValueError as error:
        raise UsageProblem(f"--server: {error}.") from None
    headers = {**(before.headers if before else {}), **dict(given.header)}
    files = or_else(files_of(given), before.tls if before else Tls())
    if files != Tls() and not server.startswith(HTTPS):
        raise UsageProblem(f"--ca-file, --cert-file and --key-file go with https:// addresses, not with {masked(server)}.")
    if hasattr(given, "token_file"):
        headers = dict(authorized(headers, token_in(given.token_file)))
    made = Context(server, {name: value for name, value in headers.items() if value}, _absolute(files))
    known = {**contexts.contexts, given.name: made}
    write_contexts(Contexts(contexts.current or given.name, known), os.environ)
    session.out.done(f"Context {given.name} is {masked(server)}.", _named(read_contexts(os.environ), given.name))


async def _delete(session: Session, given: argparse.Namespace) -> None:
    contexts = read_contexts(os.environ)
    gone = contexts.named(given.name)
    left = {name: one for name, one in contexts.contexts.items() if name != given.name}
    write_contexts(Contexts("" if contexts.current == given.name else contexts.current, left), os.environ)
    session.out.done(f"Context {given.name} is forgotten.", gone.masked())


def _named(contexts: Contexts, name: str) -> Named:
    masked = contexts.named(name).masked()
    return Named(name, contexts.current == name, masked.server, masked.headers, masked.tls)


def _absolute(files: Tls) -> Tls:
    """The same from any folder."""
    return Tls(**{name: str(Path(file).absolute()) for name, file in msgspec.to_builtins(files).items()})
