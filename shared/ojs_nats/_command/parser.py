"""Parsers of command lines that say in a line what is wrong, with what may have been meant."""

from __future__ import annotations

import argparse
import functools
import shutil
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn


@functools.cache
def _width() -> int:
    return shutil.get_terminal_size().columns - 2


def formatter(prog: str) -> argparse.HelpFormatter:
    """Make what writes help.

    argparse makes one for each added argument, and each would ask the terminal for its width.
    """
    return argparse.RawDescriptionHelpFormatter(prog, width=_width())


class PlainParser(argparse.ArgumentParser):
    """A parser that says what is wrong in a line, with what may have been meant."""

    gone: Mapping[str, str] = {}
    """Commands of earlier versions, each with the one that took its place."""

    def error(self, message: str) -> NoReturn:
        """Say it, and exit with 2."""
        self.exit(2, f"{self.prog}: {message}; see '{self.prog} --help'\n")

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """Say which words it doesn't know."""
        known = list(self._option_string_actions)
        self.error(f"unrecognized arguments: {' '.join(unknown)}{meant(unknown[0].partition('=')[0], known)}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.nargs == argparse.PARSER and action.choices is not None and value not in action.choices:
            now = self.gone.get(str(value))
            hint = f" any more: use '{self.prog} {now}'" if now else meant(str(value), list(action.choices))
            raise argparse.ArgumentError(None, f"there is no {value!r}{hint}")
        super()._check_value(action, value)


def meant(word: str, known: Sequence[str]) -> str:
    """Return a hint at the known word that is next to this one, or nothing."""
    import difflib  # noqa: PLC0415  # for mistakes alone

    close = difflib.get_close_matches(word, known, 1)
    return f" (did you mean {close[0]}?)" if close else ""
