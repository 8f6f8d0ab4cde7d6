"""Writes shared/ojs_nats/sync.pyi, what type checkers know of the client for code without an event loop, from the other one.

`.venv/bin/python script/sync_stub.py`; with `--check` it writes nothing, and fails if the file isn't as it would be.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parent.parent))
from script.python_package import PACKAGE, ROOT, Function, keep, name_of, tree

WRITTEN: Final = PACKAGE / "sync.pyi"
CLIENT: Final = "ojs_nats.client"
WORKFLOWS: Final = "ojs_nats.operations.workflows"
HANDLES: Final = {"JobHandle": CLIENT, "WorkflowHandle": WORKFLOWS}
HEAD: Final = """from __future__ import annotations

import ssl
from collections.abc import Iterator
from typing import Literal, TypeVar, type_check_only

from ojs_nats._clients import Clients
from ojs_nats._closing import SyncClosing
from ojs_nats.tls import Tls

__all__ = ["SyncClient", "SyncJobHandle", "SyncWorkflowHandle"]
"""
VARIABLES: Final = """R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
"""


def source() -> str:
    """All of the module, with more imports than it needs."""
    client = class_of(CLIENT, "Client")
    groups = dict(attributes(client))
    modules = {name: f"ojs_nats.operations.{snake(kind)}" for name, kind in groups.items()}
    imports = [line for module in dict.fromkeys([CLIENT, *modules.values()]) for line in imports_of(module)]
    classes = [group(class_of(modules[name], kind)) for name, kind in groups.items()]
    handles = [handle(class_of(module, kind)) for kind, module in HANDLES.items()]
    return "\n".join([HEAD, *imports, VARIABLES, sync_client(client, groups), *classes, *handles])


def sync_client(client: ast.ClassDef, groups: dict[str, str]) -> str:
    lines = [
        "class SyncClient(SyncClosing):",
        "    url: str",
        *(f"    {name}: Sync{kind}" for name, kind in groups.items()),
        "    def __init__(",
        "        self, url: str | None = None, *, retry_for: Duration = 30.0, token: str | None = None,",
        "        headers: Mapping[str, str] | None = None,",
        "        tls: Tls | ssl.SSLContext | None = None, clients: Clients | None = None,",
        "    ) -> None: ...",
        "    def close(self) -> None: ...",
    ]
    return "\n".join([*lines, *(sync_method(method) for method in methods(client) if method.name != "close")])


def group(kind: ast.ClassDef) -> str:
    return "\n".join(["@type_check_only", f"class Sync{kind.name}:", *(sync_method(method) for method in methods(kind))])


def handle(kind: ast.ClassDef) -> str:
    lines = [f"class Sync{kind.name}(Generic[R_co]):", "    id: str"]
    return "\n".join([*lines, *(sync_method(method) for method in methods(kind))])


def sync_method(method: Function) -> str:
    """Return the signature of the method that doesn't wait."""
    assert method.returns is not None
    returns = ast.unparse(method.returns)
    if items := re.fullmatch(r"Async(?:Iterator|Generator)\[(.*)\]", returns):
        returns = f"Iterator[{items[1]}]"
    for name in HANDLES:
        returns = returns.replace(name, f"Sync{name}")
    return f"    def {method.name}({ast.unparse(method.args)}) -> {returns}: ..."


# What is read


def class_of(module: str, name: str) -> ast.ClassDef:
    return next(node for node in tree(module).body if isinstance(node, ast.ClassDef) and node.name == name)


def methods(kind: ast.ClassDef) -> Iterator[Function]:
    """What others call."""
    for node in kind.body:
        if isinstance(node, Function) and (node.name == "__call__" or not node.name.startswith("_")):
            yield node


def attributes(client: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """The groups of operations that it makes, with their classes."""
    made = next(node for node in client.body if isinstance(node, ast.FunctionDef) and node.name == "__init__")
    for node in made.body:
        match node:
            case ast.Assign(targets=[ast.Attribute(attr=name)], value=ast.Call(func=ast.Name(id=kind), args=[_, *_])) if kind[
                0
            ].isupper():
                yield name, kind
            case _:
                pass


def imports_of(module: str) -> Iterator[str]:
    """What its annotations may need: what it imports, and what it defines."""
    body = tree(module).body
    for node in body:
        if isinstance(node, ast.ImportFrom) and node.module != "__future__":
            yield ast.unparse(node)
    names = [name_of(node) for node in body if not isinstance(node, Function)]
    defined = [name for name in names if name and not name.startswith("_") and name not in {"R", "R_co"}]
    yield f"from {module} import {', '.join(defined)}"


def snake(name: str) -> str:
    words = re.findall(r"[A-Z][a-z]+", name.removeprefix("Server"))
    return "_".join(words).lower()


def tidied(text: str) -> str:
    """Without the imports that it doesn't need, and formatted like everything else."""
    for how in (["check", "--fix", "--select", "F401,F811,I,PYI011"], ["format"], ["check", "--fix"], ["format"]):
        command = [sys.executable, "-m", "ruff", *how, "--quiet", "--stdin-filename", str(WRITTEN), "-"]
        text = subprocess.run(command, input=text, capture_output=True, text=True, check=False, cwd=ROOT).stdout
    return text


if __name__ == "__main__":
    keep(WRITTEN, tidied(source()))
