"""Which jobs a worker can run: the types that it handles, and of each the versions (ojs-job-versioning §8).

Whoever declares nothing handles everything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from operator import eq, ge, gt, le, lt
from typing import Final

from msgspec import Struct

from ojs_engine.base.errors import OjsError, invalid
from ojs_engine.base.fields import shown
from ojs_engine.domain.job import Job
from ojs_engine.domain.versions import Version, parse_version, version_of

ANY_VERSION: Final = "*"
_COMPARED: Final = {">=": ge, "<=": le, ">": gt, "<": lt, "=": eq}
_BOUND: Final = re.compile(r"(>=|<=|>|<|=)?\s*([^\s,<>=]+)")
_RANGE: Final = re.compile(rf"\s*{_BOUND.pattern}(?:[\s,]+{_BOUND.pattern})*\s*")
_MOST_CHARS: Final = 200


class Handler(Struct, frozen=True):
    """A job type, and which versions of it: `*`, `2.0`, or bounds that all have to hold, such as `>=1.0 <3.0`."""

    type: str
    versions: str = ANY_VERSION


class _Bound(Struct, frozen=True):
    comparison: str
    version: Version

    def holds(self, version: Version) -> bool:
        return bool(_COMPARED[self.comparison](version, self.version))


def parse_range(text: str, field: str) -> tuple[_Bound, ...]:
    """The bounds of a range of versions, none for `*`. Raises OjsError invalid_request."""
    if text.strip() == ANY_VERSION:
        return ()
    if len(text) > _MOST_CHARS or not _RANGE.fullmatch(text):
        raise _no_range(text, field)
    try:
        return tuple(_Bound(sign or "=", parse_version(version, field)) for sign, version in _BOUND.findall(text))
    except OjsError:
        raise _no_range(text, field) from None


def _no_range(text: str, field: str) -> OjsError:
    return invalid(field, f"{field} must be *, a version such as 2.0, or bounds such as >=1.0 <3.0, not {shown(text)}")


class Handled:
    """What one worker declares: its job types with their versions."""

    __slots__ = ("_ranges", "declared")

    def __init__(self, declared: Iterable[Handler]) -> None:
        """Raises OjsError invalid_request for what is no range of versions."""
        self.declared = tuple(declared)
        self._ranges: dict[str, list[tuple[_Bound, ...]]] = {}
        for index, handler in enumerate(self.declared):
            bounds = parse_range(handler.versions, f"handlers[{index}].versions")
            self._ranges.setdefault(handler.type, []).append(bounds)

    def runs(self, job_type: str, version: int | str | None) -> bool:
        """Whether the worker can run a job: one without a version if it handles the type at all (§8.2)."""
        ranges = self._ranges.get(job_type)
        if ranges is None:
            return False
        named = version_of(version)
        return named is None or any(all(bound.holds(named) for bound in bounds) for bounds in ranges)

    def runs_job(self, job: Job) -> bool:
        return self.runs(job.type, job.version)
