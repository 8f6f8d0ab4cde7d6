"""Marks as workers get and return them: texts that nobody but the server reads (docs/adr/016)."""

from __future__ import annotations

import re
from typing import Final

from ojs_engine.base.errors import invalid
from ojs_engine.domain.worker import Mark

_MARK: Final = re.compile(r"([0-9]{1,18})-([0-9]{1,15})", re.ASCII)


def mark_text(mark: Mark) -> str:
    """The text of a mark."""
    return f"{mark.sequence}-{mark.at}"


def mark_of(text: str | None, path: str) -> Mark:
    """The mark that an answer has given. Raises invalid_request."""
    found = _MARK.fullmatch(text or "")
    if found is None:
        raise invalid(path, f"{path} must be the mark of an earlier answer")
    return Mark(int(found[1]), int(found[2]))
