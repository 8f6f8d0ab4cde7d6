"""Members of a job that have no effect where they stand: most are misspelt ones, and their sender is told (docs/adr/047)."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from typing import Final

from ojs_engine.base.errors import OjsError, invalid
from ojs_engine.base.fields import below, shown
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.wire.members import AnswerWarning

_PREFIXES: Final = ("ext_", "x_", "x-")
"""Of members that extensions bring (ojs-extension-lifecycle)."""
_LIKENESS: Final = 0.8
_MOST: Final = 20
"""Warnings of one job; a job may have more members that nobody knows."""
_MOST_NAMED: Final = 10


def meant(name: str, known: Collection[str]) -> str | None:
    """The member that a misspelt or shortened name probably stands for."""
    longer = next((one for one in sorted(known) if one.startswith(f"{name}_")), None)
    return longer or next(iter(difflib.get_close_matches(name[:64], known, 1, _LIKENESS)), None)


def without_effect(names: Iterable[str], known: Collection[str], path: str, *, only_close: bool = False) -> list[AnswerWarning]:
    """A warning for each name that is not `known`; `path` is the object they stand in, "" for the job itself.

    `only_close` leaves out what resembles no known name: beside a job's attributes its owner may keep members of their own.
    """
    found: list[AnswerWarning] = []
    for name in names:
        if name in known or name.startswith(_PREFIXES):
            continue
        close = meant(name, known)
        if (close is not None or not only_close) and len(found) < _MOST:
            place = below(path, name)
            question = f"; did you mean {close}?" if close else ""
            found.append(AnswerWarning(place, f"{place} is no member that this server knows, and has no effect{question}"))
    return found


def in_policy(names: Iterable[str], known: Collection[str], path: str, limits: PayloadLimits) -> list[AnswerWarning]:
    """Return `without_effect` for the members of a job's policy. Raises unknown_attributes for any in strict mode."""
    found = without_effect(names, known, path)
    if found and limits.strict:
        fields = [one.field for one in found[:_MOST_NAMED]]
        listed = ", ".join(map(shown, fields))
        more = " and more" if len(found) > _MOST_NAMED else ""
        raise OjsError(
            "unknown_attributes",
            f"the job has attributes that Open Job Spec doesn't define: {listed}{more}",
            details={"field": fields[0], "attributes": fields},
        )
    return found


def refuse_pointless(warnings: Iterable[AnswerWarning], path: str, need: str) -> None:
    """Raise invalid_request for the first of `warnings`, because without what it stands for `path` means nothing."""
    for one in warnings:
        raise invalid(one.field, f"{one.message}, and {path} {need}")
