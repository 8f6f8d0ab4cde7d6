"""What docs/conformance.md says of the specification's documents is what a running server does."""

from __future__ import annotations

import re
from typing import Final

import pytest

from script.pages.conformance import Document, conformance
from script.pages.endpoints import own_description
from support.system import System

KNOWN: Final = conformance()
DECLINED: Final = [document for document in KNOWN.documents if document.absent]


def test_operations_of_documents_are_served(system: System) -> None:
    described = own_description(system.url)["paths"]
    for document in KNOWN.documents:
        for operation in document.operations:
            method, _, path = operation.partition(" ")
            assert method.lower() in described[path], document.name


@pytest.mark.parametrize("document", DECLINED, ids=lambda document: document.name)
def test_operations_of_documents_that_are_not_served_are_not_found(system: System, document: Document) -> None:
    for operation in document.absent:
        method, _, path = operation.partition(" ")
        answer = system.request(method, re.sub(r"\{\w+\}", "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f", path))
        assert (answer.status, answer.body["error"]["code"]) == (404, "not_found")


def test_the_manifest_declares_the_extensions_that_are_served(system: System) -> None:
    declared = system.request("GET", "/ojs/manifest").body["extensions"]
    assert sorted(declared) == sorted(document.extension for document in KNOWN.documents if document.extension)
