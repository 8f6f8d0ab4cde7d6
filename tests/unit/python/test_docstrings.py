"""A user reads of each public thing what it does, and of each argument what it is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[3] / "shared" / "ojs_nats"
SUBJECTS = [
    *(f"{name}.py" for name in ("__init__", "app", "chains", "client", "definitions", "dependencies", "errors")),
    *(f"{name}.py" for name in ("jobs", "options", "sync", "tls", "webhooks", "workflows")),
    *(f"worker/{name}.py" for name in ("_context", "_outcome", "_worker")),
    *(f"testing/{name}.py" for name in ("__init__", "_clock", "_fake", "_server", "plugin")),
    *sorted(
        str(path.relative_to(PACKAGE))
        for folder in ("middleware", "models", "operations")
        for path in (PACKAGE / folder).glob("*.py")
        if path.name != "_subject.py"
    ),
]
RIDDLES = re.compile(r"(What|Who|Whom|Whoever|Whatever|Of|Those|As|With|That|Which|Such|How|When|Where|It)\b|The same|None of")
SELF = {"self", "cls"}
# Objects that the package makes, and not its users.
MADE_BY_THE_PACKAGE = {
    "Clock", "Fake", "JobContext", "JobDefinition", "JobFailed", "JobDropped", "JobHandle", "LoopLine",
    "Need", "Dependency", "OjsError", "Server", "ServerSystem", "SyncJobHandle", "SyncWorkflowHandle", "Subject",
    "WorkflowFailed", "WorkflowHandle", "Workflows", "Crons", "Chain", "Group", "Batch",
}  # fmt: skip

Documented = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def _things(tree: ast.Module | ast.ClassDef, within: str = "") -> Iterator[tuple[str, Documented]]:
    for node in tree.body:
        shown = isinstance(node, Documented) and (node.name == "__call__" or not node.name.startswith("_"))
        if isinstance(node, Documented) and shown and not _overload(node):
            yield within + node.name, node
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from _things(node, f"{node.name}.")


def _overload(node: Documented) -> bool:
    return any(isinstance(each, ast.Name) and each.id == "overload" for each in node.decorator_list)


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    given = function.args
    names = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    names += [f"{stars}{each.arg}" for stars, each in (("*", given.vararg), ("**", given.kwarg)) if each is not None]
    return [name for name in names if name not in SELF]


def _named(text: str, section: str = "Args") -> list[str]:
    found = re.search(rf"^{section}:\n((?:    .*\n?|\n)*)", text, re.MULTILINE)
    return re.findall(r"^    (\*{0,2}\w+): ", found[1], re.MULTILINE) if found else []


def _constructor(kind: ast.ClassDef) -> list[str]:
    if kind.name in MADE_BY_THE_PACKAGE or any("Protocol" in ast.unparse(base) for base in kind.bases):
        return []
    made = next((node for node in kind.body if isinstance(node, ast.FunctionDef) and node.name == "__init__"), None)
    return _parameters(made) if made else []


@pytest.mark.parametrize("file", SUBJECTS)
def test_each_public_thing_says_what_it_is_in_a_plain_sentence(file: str) -> None:
    tree = ast.parse((PACKAGE / file).read_text(encoding="utf-8"))
    found: list[str] = []
    for name, node in [("the module", tree), *_things(tree)]:
        said = ast.get_docstring(node)
        if not said:
            found.append(f"{name} says nothing")
        elif RIDDLES.match(said):
            found.append(f"{name} begins without a subject: {said.splitlines()[0]}")
        elif not re.match(r"[^\n]+(\n[^\n]+)*[.:`]($|\n\n)", said):
            found.append(f"{name} doesn't begin with a sentence: {said.splitlines()[0]}")
    assert found == []


@pytest.mark.parametrize("file", [name for name in SUBJECTS if not name.startswith("models/")])
def test_each_argument_of_several_is_explained(file: str) -> None:
    tree = ast.parse((PACKAGE / file).read_text(encoding="utf-8"))
    found: list[str] = []
    for name, node in _things(tree):
        said = ast.get_docstring(node) or ""
        named = _named(said)
        if isinstance(node, ast.ClassDef):
            parameters = _constructor(node)
            targets = [each.target for each in node.body if isinstance(each, ast.AnnAssign)]
            known = [*parameters, *(each.id for each in targets if isinstance(each, ast.Name))]
        else:
            parameters = known = _parameters(node)
            if "next" in parameters or name.endswith(".read") or file.endswith("plugin.py"):
                continue  # as each middleware; as `Flow.read`; fixtures
        if strange := [each for each in named if each not in known]:
            found.append(f"{name} explains {strange}, which it hasn't got")
        several = bool(named) or isinstance(node, ast.ClassDef) or len(parameters) > 1
        lacking = [each for each in parameters if each not in named and each not in {"*args", "**kwargs"}]
        if several and lacking:
            found.append(f"{name} doesn't explain {lacking}")
    assert found == []
