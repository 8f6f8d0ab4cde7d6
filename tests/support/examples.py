"""How much random tests and fault runs try: `OJS_EXAMPLES` is `few`, `many` or `all`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final, TypeVar

from hypothesis import settings

Test = TypeVar("Test", bound=Callable[..., Any])

WHOLE: Final = 300
"""Examples of a random test that has no number of its own."""
_SHARES: Final = {"few": 0.1, "many": 0.25, "all": 1.0}


def amount() -> str:
    """Return what `OJS_EXAMPLES` says, or `few`."""
    said = os.environ.get("OJS_EXAMPLES", "few")
    assert said in _SHARES, f"OJS_EXAMPLES is {said!r}: few, many and all are possible"
    return said


def examples(whole: int, *, least: int = 5, costly: bool = False) -> int:
    """Return how many examples of `whole` to try now; of `costly` ones, each of which takes long, half of `few`."""
    share = _SHARES[amount()] / (2 if costly and amount() != "all" else 1)
    return max(round(whole * share), least)


def costly(test: Test) -> Test:
    """Have a random test, each of whose examples takes long, try fewer of them."""
    return settings(max_examples=examples(WHOLE, costly=True))(test)
