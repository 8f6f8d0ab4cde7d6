"""Writes shared/ojs_nats/_sync.py, the client for code without an event loop, from the modules of the client that has one.

`.venv/bin/python script/sync_client.py`; with `--check` it writes nothing, and fails if the file isn't as it would be.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
PACKAGE: Final = ROOT / "shared" / "ojs_nats"
WRITTEN: Final = PACKAGE / "_sync.py"
CLIENT: Final = "_client"
WORKFLOWS: Final = "_api/workflows"
HANDLES: Final = {"JobHandle": CLIENT, "WorkflowHandle": WORKFLOWS}
HEAD: Final = '''"""The client for code without an event loop. Made by script/sync_client.py from the other: change that."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from typing import TypeVar

from ojs_nats import _portal
from ojs_nats._clients import Clients
from ojs_nats._closing import SyncClosing
from ojs_nats._tls import Tls, check_scheme
'''

SAID: Final = '''    """`Client` for code without an event loop: `with SyncClient() as client:` closes its connections.

    The end of the process does so, too. Many threads may use it at once, and forks of the process; an event loop would be
    blocked by it.
    """
'''

Method = ast.FunctionDef | ast.AsyncFunctionDef


def main() -> None:
    made = tidied(source())
    if "--check" not in sys.argv:
        WRITTEN.write_text(made, encoding="utf-8")
    elif WRITTEN.read_text(encoding="utf-8") != made:
        sys.exit(f"{WRITTEN.relative_to(ROOT)} isn't current: run script/sync_client.py")


def source() -> str:
    """All of the module, with more imports than it needs."""
    client = class_of(CLIENT, "Client")
    groups = dict(attributes(client))
    modules = {name: f"_api/{snake(kind)}" for name, kind in groups.items()}
    imports = [line for module in dict.fromkeys([CLIENT, *modules.values()]) for line in imports_of(module)]
    classes = [group(class_of(modules[name], kind)) for name, kind in groups.items()]
    handles = [handle(class_of(module, kind)) for kind, module in HANDLES.items()]
    return "\n".join([HEAD, *imports, 'R = TypeVar("R")\n', sync_client(client, groups), *classes, *handles])


def sync_client(client: ast.ClassDef, groups: dict[str, str]) -> str:
    lines = [
        "class SyncClient(SyncClosing):",
        SAID,
        "    def __init__(",
        "        self, url: str | None = None, *, patience: Duration = 30.0, token: str | None = None,",
        "        headers: Mapping[str, str] | None = None,",
        "        tls: Tls | ssl.SSLContext | None = None, clients: Clients | None = None,",
        "    ) -> None:",
        "        self.url = url_of(url)",
        "        if clients is None:",
        "            check_scheme(self.url, tls)",
        "        self._clients = clients or Clients(",
        "            lambda: Client(self.url, patience=patience, token=token, headers=headers, tls=tls)",
        "        )",
        *(f"        self.{name} = Sync{kind}(lambda: self._client().{name})" for name, kind in groups.items()),
        "    def _client(self) -> Client:",
        "        return self._clients.of(_portal.loop())",
        "    def close(self) -> None:",
        '        """Close the connections; the next request opens new ones."""',
        "        _portal.call(self._clients.close())",
    ]
    return "\n".join([*lines, *(sync_method(method, "self._client()") for method in methods(client) if method.name != "close")])


def group(kind: ast.ClassDef) -> str:
    lines = [
        f"class Sync{kind.name}:",
        f"    {quoted(kind)}",
        f"    def __init__(self, its: Callable[[], {kind.name}]) -> None:",
        "        self._its = its",
    ]
    return "\n".join([*lines, *(sync_method(method, "self._its()") for method in methods(kind))])


def handle(kind: ast.ClassDef) -> str:
    lines = [
        f"class Sync{kind.name}(Generic[R]):",
        f"    {quoted(kind)}",
        f"    def __init__(self, handle: {kind.name}[R]) -> None:",
        "        self._handle = handle",
        "        self.id = handle.id",
        "    def __repr__(self) -> str:",
        f'        return f"Sync{kind.name}({{self.id}})"',
    ]
    return "\n".join([*lines, *(sync_method(method, "self._handle") for method in methods(kind))])


def sync_method(method: Method, its: str) -> str:
    """The same without `await`, on the process's own loop."""
    assert method.returns is not None
    returns = ast.unparse(method.returns)
    called = its if method.name == "__call__" else f"{its}.{method.name}"
    asked = f"{called}({', '.join(passed(method.args))})"
    items = re.fullmatch(r"Async(?:Iterator|Generator)\[(.*)\]", returns)
    answer = f"_portal.each({asked})" if items else f"_portal.call({asked})"
    if kind := next((name for name in HANDLES if name in returns), None):
        made = f"Sync{kind}({{}})"
        if "|" in returns:
            answer = f"[{made.format('one')} if isinstance(one, {kind}) else one for one in {answer}]"
        elif returns.startswith("list["):
            answer = f"[{made.format('one')} for one in {answer}]"
        else:
            answer = made.format(answer)
        returns = returns.replace(kind, f"Sync{kind}")
    returns = f"Iterator[{items[1]}]" if items else returns
    answered = answer if returns == "None" else f"return {answer}"
    return "\n".join(
        [f"    def {method.name}({ast.unparse(method.args)}) -> {returns}:", f"        {quoted(method)}", f"        {answered}"]
    )


def passed(arguments: ast.arguments) -> Iterator[str]:
    yield from (one.arg for one in arguments.args[1:])
    yield from (f"{one.arg}={one.arg}" for one in arguments.kwonlyargs)
    if arguments.kwarg is not None:
        yield f"**{arguments.kwarg.arg}"


def quoted(node: Method | ast.ClassDef) -> str:
    """The docstring, as code that doesn't wait has it."""
    said = ast.get_docstring(node, clean=True)
    if said is None:
        return ""
    said = re.sub(r"\b(async for|async with|await) ?", lambda found: found[1].removeprefix("async ").replace("await", ""), said)
    said = re.sub(r"(for|with)(?=\w+ in)", r"\1 ", said)
    indent = "    " if isinstance(node, ast.ClassDef) else "        "
    first, *rest = said.splitlines()
    lines = [first, *(f"{indent}{line}".rstrip() for line in rest)]
    return '"""' + "\n".join(lines) + (f"\n{indent}" if rest else "") + '"""'


# What is read


def class_of(module: str, name: str) -> ast.ClassDef:
    return next(node for node in tree(module).body if isinstance(node, ast.ClassDef) and node.name == name)


def methods(kind: ast.ClassDef) -> Iterator[Method]:
    """What others call."""
    for node in kind.body:
        if isinstance(node, Method) and (node.name == "__call__" or not node.name.startswith("_")):
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
    defined = [name for node in body for name in names_of(node) if not name.startswith("_") and name != "R"]
    yield f"from ojs_nats.{module.replace('/', '.')} import {', '.join(defined)}"


def names_of(node: ast.stmt) -> list[str]:
    match node:
        case ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
            return [name]
        case _:
            return []


def tree(module: str) -> ast.Module:
    return ast.parse((PACKAGE / f"{module}.py").read_text(encoding="utf-8"))


def snake(name: str) -> str:
    words = re.findall(r"[A-Z][a-z]+", name.removeprefix("Server"))
    return "_".join(words).lower()


def tidied(text: str) -> str:
    """Without the imports that it doesn't need, and formatted like everything else."""
    for how in (["check", "--fix", "--select", "F401,F811,I,D"], ["format"], ["check", "--fix", "--select", "F401,I"]):
        command = [sys.executable, "-m", "ruff", *how, "--quiet", "--stdin-filename", str(WRITTEN), "-"]
        text = subprocess.run(command, input=text, capture_output=True, text=True, check=False, cwd=ROOT).stdout
    return text


if __name__ == "__main__":
    main()
