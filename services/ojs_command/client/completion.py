"""`ojs-nats completion`: a script for the shell, made of the parsers."""

from __future__ import annotations

import argparse
from typing import Final

import shtab

from ojs_command.client.parser import CommandParser
from ojs_command.client.session import Session

_EXAMPLES: Final = """\
  eval "$(ojs-nats completion bash)"                                             now, or in ~/.bashrc
  ojs-nats completion zsh > "${fpath[1]}/_ojs-nats"                              then open a new shell
  ojs-nats completion fish > ~/.config/fish/completions/ojs-nats.fish

The script knows the commands of this version: make it anew after an upgrade.
"""


def define(parser: CommandParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))
    parser.does(_complete, examples=_EXAMPLES)
    parser.set_defaults(offline=True)


async def _complete(session: Session, given: argparse.Namespace) -> None:
    for command in given.commands.choices.values():
        if isinstance(command, CommandParser):
            command.fill()
            command.show_all()
    session.out.raw(shtab.complete(given.root, given.shell))
