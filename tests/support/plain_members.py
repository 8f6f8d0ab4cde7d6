"""Values for the plain members of a job, by the kinds in the table: tests follow from these what a new member does."""

from __future__ import annotations

from typing import Any, Final

from ojs_engine.domain.members import MEMBERS, Kind

SENT: Final[dict[Kind, Any]] = {"text": "payments", "texts": ["payments", "other"]}
OTHER: Final[dict[Kind, Any]] = {"text": "theirs", "texts": ["theirs"]}
REFUSED: Final[dict[Kind, tuple[Any, ...]]] = {
    "text": (5, "", "bad\x00", "x" * 256, ["payments"]),
    "texts": ("payments", 5, [""], [5], ["bad\x00"], ["x" * 256], ["x"] * 101),
}
PLAIN: Final = {member.name: member.kind for member in MEMBERS if member.kind is not None}


def plain(values: dict[Kind, Any]) -> dict[str, Any]:
    """Return one of these values for each plain member, as it is sent."""
    return {name: values[kind] for name, kind in PLAIN.items()}


def stored(values: dict[Kind, Any]) -> dict[str, Any]:
    """Return them as a record has them."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in plain(values).items()}
