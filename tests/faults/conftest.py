from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.system import Services


@pytest.fixture
def system(tmp_path: Path) -> Iterator[Services]:
    """A whole server of the test's own, which it may harm: nothing is started again by itself."""
    with Services.started(tmp_path / "system") as system:
        yield system


@pytest.fixture
def seed() -> int:
    """What the test's random choices follow from: `OJS_SEED`, or a new one; printed, so that a failure can be repeated."""
    chosen = int(os.environ.get("OJS_SEED") or random.SystemRandom().getrandbits(32))
    print(f"OJS_SEED={chosen}")  # noqa: T201  # pytest shows it when the test fails
    return chosen
