"""Definitions in modules without `from __future__ import annotations`, in each Python of 3.11 to 3.14 that is here.

What the package needs is installed from the registry into a virtual environment of each.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from support.walks import ROOT

pytestmark = pytest.mark.slow

VERSIONS: Final = ("3.11", "3.12", "3.13", "3.14")
REQUIREMENTS: Final = ("aiohttp>=3.12", "msgspec>=0.19", "nats-py>=2.6", "uuid6>=2025.0.1")
PROGRAM: Final = '''
import inspect
import pickle
import sys
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Optional

from ojs_nats._arguments import Parameters
from ojs_nats import App, Depends, JobContext

if TYPE_CHECKING:
    from decimal import Decimal

app = App("http://127.0.0.1:9")

@dataclass
class Order:
    id: int
    after: "Order | None" = None

@app.job
async def send(ctx: JobContext, order: "Order", note: str | None = None) -> Order | None:
    """Send it."""
    return order if note is None else None

@app.job
def count(when: Optional[datetime] = None, *rest: "int") -> list["int"]:
    return [*rest]

def number() -> int:
    return 1

@app.job
def depending(name: str, *, one: int = Depends(number)) -> str:
    return name * one

order = Order(1, Order(2))
assert Parameters(send.handler).takes_context
assert Parameters(send.handler).returns == Order | None
assert Parameters(send.handler).converted([{"id": 1, "after": {"id": 2}}, None]) == [order, None]
assert send.__doc__ == "Send it." and list(inspect.signature(send).parameters) == ["ctx", "order", "note"]
assert inspect.iscoroutinefunction(send) or sys.version_info < (3, 12)
assert pickle.loads(pickle.dumps(send)) is send
assert Parameters(count.handler).converted(["2026-11-28T00:00:00Z", 1, 2])[1:] == [1, 2]
assert count(None, 1, 2) == [1, 2]
assert list(Parameters(depending.handler).injected) == ["one"] and depending("a", one=2) == "aa"

def refused(job) -> str:
    try:
        job()
    except TypeError as error:
        return str(error)
    raise AssertionError("it is refused")

assert "isn't what the worker could read" in refused(lambda: count.job(None, "two"))

def hidden(amount: "Decimal") -> None: ...
assert "TYPE_CHECKING" in refused(lambda: app.job(hidden))

if sys.version_info >= (3, 14):  # before, such a hint is an error of Python itself
    exec("""
def lazily(self, amount: Decimal) -> None: ...
def later(amount: Later) -> None: ...
""")
    assert "TYPE_CHECKING" in refused(lambda: app.job(lazily))
    assert "can't be resolved" in refused(lambda: app.job(later))
    Later = int
    assert Parameters(app.job(later).handler).converted([1]) == [1]

print(*sys.version_info[:2], sep=".")
'''


def interpreters(version: str) -> Iterator[Path]:
    """Yield the places where that Python may be: on PATH, and among pyenv's."""
    on_path = shutil.which(f"python{version}")
    if on_path is not None:
        yield Path(on_path)
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from sorted(root.glob(f"versions/{version}.*/bin/python"))


def runs(interpreter: Path) -> bool:
    """Return whether it is an interpreter, and not pyenv's word for one that isn't chosen."""
    return subprocess.run([interpreter, "-c", ""], check=False, capture_output=True).returncode == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_hints_are_understood_in_each_python(tmp_path: Path, version: str) -> None:
    found = next(filter(runs, interpreters(version)), None)
    if found is None:
        pytest.skip(f"there is no Python {version} on this machine")
    place = tmp_path / "environment"
    python = str(place / "bin" / "python")
    subprocess.run([found, "-m", "venv", place], check=True)
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *REQUIREMENTS]
    subprocess.run(pip, check=True)
    program = tmp_path / "jobs.py"
    program.write_text(PROGRAM, encoding="utf-8")
    surroundings = {**os.environ, "PYTHONPATH": str(ROOT / "shared"), "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run([python, program], check=False, env=surroundings, capture_output=True, text=True)
    assert (run.stdout, run.stderr) == (f"{version}\n", "")
