"""The words that clients and servers share are listed once, and what acts on them knows them all."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, get_args, get_origin

import ojs_api
from ojs_api import words
from ojs_engine.access.permissions import ROLES
from ojs_engine.domain.job import State

ROOT: Final = Path(__file__).parents[3]
CONTRACT: Final = [importlib.import_module(f"ojs_api.{found.name}") for found in pkgutil.iter_modules(ojs_api.__path__)]
LISTS: Final = [get_args(kind) for module in CONTRACT for kind in vars(module).values() if get_origin(kind) is Literal]


def spelt(file: Path, *, types: bool = False) -> Iterator[tuple[int, frozenset[str]]]:
    """Lists of words in the source: tuples, lists, sets and arguments of calls; or those of types, as Literal has them."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    literals = [node for node in ast.walk(tree) if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Literal"]
    if types:
        for literal in literals:
            yield from words_of(literal.slice)
        return
    within = {id(literal.slice) for literal in literals}
    for node in ast.walk(tree):
        if id(node) not in within:
            yield from words_of(node)


def words_of(node: ast.AST) -> Iterator[tuple[int, frozenset[str]]]:
    match node:
        case ast.Tuple(elts=listed) | ast.List(elts=listed) | ast.Set(elts=listed) | ast.Call(args=listed) if listed:
            texts = [each.value for each in listed if isinstance(each, ast.Constant) and isinstance(each.value, str)]
            if len(texts) == len(listed):
                yield listed[0].lineno, frozenset(texts)
        case _:
            pass


def test_no_list_is_spelt_a_second_time() -> None:
    known = {frozenset(listed) for listed in LISTS if len(listed) > 1}
    files = [
        file for part in ("shared", "services") for file in (ROOT / part).rglob("*.py") if "node_modules" not in file.parts
    ]
    again = [
        f"{file.relative_to(ROOT)}:{line}"
        for file in files
        if "ojs_api" not in file.parts
        for line, said in (*spelt(file), *spelt(file, types=True))
        if said in known
    ]
    assert again == [], "take them from ojs_api"


def test_no_list_of_the_server_alone_is_spelt_a_second_time() -> None:
    """Beside its type, in a tuple or a call. Two types of layers that don't know each other are compared where they meet.

    Lists of processes are left out: which of them do something is another question in each place.
    """
    files = [
        file
        for part in ("ojs_engine", "ojs_index", "ojs_runtime", "ojs_features")
        for file in (ROOT / "shared" / part).rglob("*.py")
    ]
    files += [file for file in (ROOT / "services").rglob("*.py") if "node_modules" not in file.parts]
    types = {said for file in files for _, said in spelt(file, types=True) if len(said) > 1 and "gateway" not in said}
    again = [f"{file.relative_to(ROOT)}:{line}" for file in files for line, said in spelt(file) if said in types]
    assert again == [], "take them from their type by get_args"


def test_the_domain_s_states_and_roles_are_those_of_the_list() -> None:
    assert [*State] == [*get_args(words.JobState)]
    assert [*ROLES] == [*get_args(words.Role)]
