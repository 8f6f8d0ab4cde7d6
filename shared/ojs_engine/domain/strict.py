"""Strict mode: the demands of ojs-security §8 that the core specification contradicts (docs/adr/047)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from ojs_engine.base.errors import OjsError, invalid
from ojs_engine.base.fields import shown
from ojs_engine.domain.job import Job

_KEY: Final = re.compile(r"[a-zA-Z0-9_.-]{1,128}", re.ASCII)
_BREAKS: Final = ("\r", "\n")
_MOST_NAMED: Final = 10


def type_matches(job_type: str, patterns: Iterable[str]) -> bool:
    """Whether one of the patterns is the type, or a prefix of it that ends in `*`."""
    return any(job_type.startswith(pattern[:-1]) if pattern.endswith("*") else job_type == pattern for pattern in patterns)


class Strict(Struct, frozen=True):
    """What every new job is held to in strict mode. `types` are patterns as of `type_matches`."""

    types: tuple[str, ...] = ()

    def require(self, draft: Job, *, registered: bool) -> None:
        """Raises job_type_not_registered, unknown_attributes, and invalid_request for metadata. `registered` says whether the
        type is, other than by the setting.
        """
        if not registered and not type_matches(draft.type, self.types):
            raise OjsError(
                "job_type_not_registered",
                f"type {shown(draft.type)} is not registered: it has no schema and is not in allowed_types",
                details={"field": "type", "type": draft.type},
            )
        if draft.extra:
            names = sorted(draft.extra)
            listed = ", ".join(map(shown, names[:_MOST_NAMED]))
            more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
            raise OjsError(
                "unknown_attributes",
                f"the job has attributes that Open Job Spec doesn't define: {listed}{more}",
                details={"field": names[0], "attributes": names[:_MOST_NAMED]},
            )
        for member, raw in (("meta", draft.meta), ("metadata", draft.metadata)):
            if raw:
                require_metadata(raw, member)


def require_metadata(raw: Raw, path: str) -> None:
    """Raises invalid_request for a key or a text that could do harm in a header (ojs-security §8.3)."""
    for key, value in msgspec.json.decode(raw, type=dict[str, Any]).items():
        if _KEY.fullmatch(key) is None:
            raise invalid(
                path,
                f"{path} has the key {shown(key)}; in strict mode keys match ^[a-zA-Z0-9_.-]{{1,128}}$",
                hint="Rename the key.",
                canonical="INVALID_METADATA",
            )
        if _has_break(value):
            raise invalid(
                f"{path}.{key}",
                f"{path}.{key} has a line break; in strict mode values have none",
                hint="Take out \\r and \\n, or put the text into args.",
                canonical="INVALID_METADATA",
            )


def _has_break(value: Any) -> bool:
    """Whether a text anywhere in a value has a line break, as a member's name as well."""
    waiting = [value]
    for one in waiting:
        if isinstance(one, str):
            if any(mark in one for mark in _BREAKS):
                return True
        elif isinstance(one, dict):
            waiting += [*one, *one.values()]
        elif isinstance(one, Sequence):
            waiting += one
    return False
