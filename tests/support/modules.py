"""Modules of the tests that run as processes of their own, forked as those of `ojs-nats` are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, Any, Final

from support.forked import Forked
from support.system import environment

_TESTS: Final = str(Path(__file__).parents[1])


def started(module: str, *arguments: str, output: IO[Any]) -> Forked:
    """Run a module with these arguments; `output` takes what it prints."""
    code = f"import runpy; runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
    with Path(os.devnull).open("rb") as nothing:
        files = (nothing.fileno(), output.fileno(), output.fileno())
        return Forked(arguments, environment(PYTHONPATH=_TESTS), files, Path.cwd(), code=code)
