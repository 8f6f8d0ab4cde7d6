"""What `import ojs_nats` does, and doesn't."""

from __future__ import annotations

import subprocess
import sys

import pytest

import ojs_nats


def test_importing_the_package_imports_nothing_else() -> None:
    code = "import sys; before = set(sys.modules); import ojs_nats; print(*sorted(set(sys.modules) - before))"
    said = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert set(said.stdout.split()) <= {"__future__", "ojs_nats"}


def test_each_public_name_is_there_when_it_is_used() -> None:
    assert set(ojs_nats.__all__) <= set(dir(ojs_nats))
    assert [name for name in ojs_nats.__all__ if getattr(ojs_nats, name).__name__ != name] == []


def test_a_name_that_is_none_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'ojs_nats' has no attribute 'Aap'"):
        _ = ojs_nats.Aap  # type: ignore[attr-defined]
