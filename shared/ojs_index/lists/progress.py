"""The members of answers that are made while an index is being built anew."""

from __future__ import annotations

from typing import Any

from ojs_index.asking.messages import Answer


def progress(found: Answer) -> dict[str, Any]:
    """Return the members that mark an answer of the contract as partial while the index behind it is being rebuilt."""
    return {"partial": True, "index_progress": round(found.progress, 3)} if found.partial else {}
