"""The command line of `ojs-nats`: it runs a worker, or hands the command to the server's package."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Final

WRONG_USE: Final = 2
"""The exit code for a command line that can't be understood."""
_SERVER: Final = "ojs_command.main"
"""The module that runs all other commands."""
_ALONE: Final = """\
usage: ojs-nats [-h] [--version] COMMAND ...

Run workers for an Open Job Spec server on NATS JetStream.

commands:
  worker      run the jobs that your Python modules define

'ojs-nats worker --help' explains it. All other commands (dev, push, list, top, doctor …) come with the server's
package: pip install ojs-nats-server
"""
_NOT_HERE: Final = "ojs-nats: {!r} isn't here: all commands but 'worker' come with pip install ojs-nats-server"


def main() -> int:
    """Run the command of this process; returns its exit code."""
    words = sys.argv[1:]
    if words[:1] == ["worker"]:
        return _worker(words[1:])
    if words[:1] in (["--version"], ["version"]):
        from ojs_nats._command.version import shown  # noqa: PLC0415  # metadata takes long to read

        print(shown())
        return 0
    try:
        module = import_module(_SERVER)
    except ModuleNotFoundError as error:
        if not f"{_SERVER}.".startswith(f"{error.name}."):
            raise  # it is there, and imports something that isn't
        return _without_server(words)
    code: int = module.main()
    return code


def _worker(words: list[str]) -> int:
    from ojs_nats._command import worker  # noqa: PLC0415  # other commands need no argparse from here

    return worker.main(words)


def _without_server(words: list[str]) -> int:
    """Help as far as it can be given, or say where the command is that was asked for."""
    match words:
        case ["-h" | "--help", *_] | ["help"]:
            print(_ALONE, end="")
            return 0
        case ["help", "worker"]:
            return _worker(["--help"])
        case []:
            print(_ALONE, end="", file=sys.stderr)
        case _:
            print(_NOT_HERE.format(words[0]), file=sys.stderr)
    return WRONG_USE
