"""What is used of nats-py's client."""

from __future__ import annotations

import ast
import re

import pytest
from nats.aio.client import Client

from ojs_link.client import USED, LinkClient
from support.walks import ROOT

SOURCES = ("shared/ojs_link/client.py", "shared/ojs_nats/_nats.py")


def names_in(path: str) -> set[str]:
    """The names that a module takes of any object, or gives to methods of its classes."""
    found = list(ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))))
    methods = [part for node in found if isinstance(node, ast.ClassDef) for part in node.body]
    named = {part.name for part in methods if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)}
    return named | {node.attr for node in found if isinstance(node, ast.Attribute)}


def test_every_private_name_that_is_used_is_looked_for() -> None:
    theirs = {name for name in (*dir(Client), *vars(Client())) if re.match("_[^_]", name)}
    assert set().union(*map(names_in, SOURCES)) & theirs == set(USED)


def test_a_release_without_one_of_them_is_named() -> None:
    said = r"this nats-py has no _gone, which ojs-nats uses: pip install 'nats-py<2.17'"
    with pytest.raises(ImportError, match=said):
        LinkClient((*USED, "_gone"))
