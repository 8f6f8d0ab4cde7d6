"""Parsers of commands: what they are for is known at once, their arguments when the command is given."""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from ojs_nats._command.parser import PlainParser, formatter

if TYPE_CHECKING:  # services have this module, and need no client
    from ojs_command.client.session import Session
    from ojs_nats.tls import Tls

    Run = Callable[[Session, argparse.Namespace], Awaitable[None]]
    """What a command does. Raises CommandFailed, and what the client raises."""
    Commands = argparse._SubParsersAction["CommandParser"]  # noqa: SLF001  # its type has no public name
    Define = Callable[["CommandParser"], None]
    """Adds a command's arguments."""

FILES: Final = {
    "ca_file": "the CA of an https:// server, in PEM [OJS_CA_FILE, else the context's, else the system's]",
    "cert_file": "a certificate to show to it [OJS_CERT_FILE]",
    "key_file": "that certificate's key [OJS_KEY_FILE]",
}
"""Options that name the files of TLS."""
_HELP: Final = ("-h", "--help")


class CommandParser(PlainParser):
    """A parser whose arguments `define` adds. Options of what it `does` may stand among positional arguments."""

    def __init__(self, *given: Any, define: Define | None = None, **options: Any) -> None:
        usual: dict[str, Any] = {"formatter_class": formatter, "allow_abbrev": False}
        super().__init__(*given, **(usual | options))
        self._define = define
        self._default: str | None = None
        self._runs = False
        self._mixing = False
        self._rare: list[tuple[argparse.Action, str]] = []

    def hide(self, *options: argparse.Action) -> None:
        """Leave options out of `--help`; `--help-all` has them."""
        if not self._rare:
            self.add_argument(
                "--help-all", action=_HelpAll, nargs=0, default=argparse.SUPPRESS, help="show the other settings, too, and exit"
            )
        for option in options:
            self._rare.append((option, option.help or ""))
            option.help = argparse.SUPPRESS

    def show_all(self) -> None:
        """Have `--help` and completion tell of all options."""
        for option, purpose in self._rare:
            option.help = purpose

    def fill(self) -> None:
        """Add its arguments, once."""
        define, self._define = self._define, None
        if define is not None:
            define(self)

    def actions(self, default: str) -> Commands:
        """What it can do; `default` is what it does when none is named."""
        self._default = default
        return self.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=CommandParser)

    def does(self, run: Run, *, examples: str = "") -> CommandParser:
        """Say what it runs, and take the options that all such commands have."""
        self.set_defaults(run=run)
        self._runs = True
        add_server_options(self)
        if examples:
            self.epilog = f"examples:\n{examples}"
        return self

    def parse_known_args(  # type: ignore[override]  # its overloads are argparse's own affair
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        self.fill()
        words = list(args or ())
        if self._default is not None:
            if not words or (words[0].startswith("-") and words[0] not in _HELP):
                words = [self._default, *words]
        elif self._runs and not self._mixing:
            self._mixing = True
            try:
                found, unknown = self.parse_known_intermixed_args(words, namespace)
            finally:
                self._mixing = False
            if unknown:
                self.refuse(unknown)
            return found, []
        return super().parse_known_args(words, namespace)


class _HelpAll(argparse.Action):
    """The option that prints the help with the settings that few people need."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        if isinstance(parser, CommandParser):
            parser.show_all()
        parser.print_help()
        parser.exit()


def add_command(commands: Commands, name: str, purpose: str, define: Define | None = None, **more: Any) -> CommandParser:
    """Add a command, whose arguments `define` adds when it is given; `more` is argparse's."""
    described = f"{purpose[0].upper()}{purpose[1:]}."
    return commands.add_parser(name, help=purpose, description=described, define=define, **more)


def add_module(commands: Commands, name: str, module: str, purpose: str, **more: Any) -> CommandParser:
    """Add a command of a module, which is imported when it is given."""
    return add_command(commands, name, purpose, lambda command: import_module(f"ojs_command.{module}").define(command), **more)


def add_action(actions: Commands, name: str, purpose: str, run: Run, *, examples: str = "") -> CommandParser:
    """Add one thing that a family of commands can do."""
    return add_command(actions, name, purpose).does(run, examples=examples)


def add_actions(actions: Commands, argument: str, example: str, *things: tuple[str, str, Run]) -> None:
    """Add things that a family of commands can do to what one argument names, in the examples `example`."""
    for name, purpose, run in things:
        action = add_action(actions, name, purpose, run)
        action.epilog = f"examples:\n  {action.prog} {example}\n"
        action.add_argument(argument.lower(), metavar=argument)


def files_of(given: argparse.Namespace) -> Tls:
    """The files of TLS that were named."""
    from ojs_nats.tls import Tls  # noqa: PLC0415  # services have this module, and need no client

    return Tls(**{name: getattr(given, name) for name in FILES if name in given})


def add_server_options(parser: argparse.ArgumentParser) -> None:
    """Which server, and how to answer: before the command or behind it."""
    group = parser.add_argument_group("server and output", argument_default=argparse.SUPPRESS)
    group.add_argument("--server", metavar="URL", help="its address [OJS_URL, else the current context's]")
    group.add_argument("--context", metavar="NAME", help="one of 'ojs-nats context list', with its headers")
    for name, purpose in FILES.items():
        group.add_argument(f"--{name.replace('_', '-')}", metavar="FILE", help=purpose)
    group.add_argument("--token-file", metavar="FILE", help="the key to show [OJS_AUTH_TOKEN, OJS_API_KEY]")
    group.add_argument("--json", action="store_true", help="JSON instead of tables; of what goes on, in lines")
