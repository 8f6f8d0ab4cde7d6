"""Members of extensions (`ext_…`, `x_…`) in documents that are stored: kept as sent, within bounds (docs/adr/047).

One within an inner object of a document is kept under its path, such as `filter.x_region`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

import msgspec
from msgspec import Raw, Struct

from ojs_engine.base.errors import OjsError, invalid
from ojs_engine.base.fields import absent, is_extension, members_of, value_of
from ojs_engine.base.payload_limits import DEFAULT_LIMITS, PayloadLimits

Extensions = dict[str, Raw]
"""Members by path."""

_MARKS: Final = (b'"ext_', b'"x_')
"""How the name of each begins in JSON, unless it is written with escapes."""
_decode_object: Final = msgspec.json.Decoder(dict[str, Raw]).decode


class SentExtensions(Struct, frozen=True):
    """The members of extensions in a request, those that are null included.

    `replaced` are paths of inner objects whose former members go.
    """

    members: Extensions = {}
    replaced: tuple[str, ...] = ()

    def over(self, old: Extensions, limits: PayloadLimits = DEFAULT_LIMITS) -> Extensions:
        """Return what a document with `old` has after the request. Raises as `check_extra`."""
        if not self.members and not self.replaced:
            return old
        gone = tuple(f"{path}." for path in self.replaced)
        kept = {path: raw for path, raw in old.items() if not path.startswith(gone)} | self.members
        kept = {path: raw for path, raw in kept.items() if not absent(raw)}
        check_extra(kept, limits)
        return kept


NO_EXTENSIONS: Final = SentExtensions()


def sent_extensions(
    members: Mapping[str, Raw],
    limits: PayloadLimits,
    *,
    replaced: Collection[str] = (),
    changed: Collection[str] = (),
) -> SentExtensions:
    """Return the members of extensions in a request.

    Args:
        members: The request's members, undecoded.
        limits: What bounds each.
        replaced: Paths of inner objects that a request replaces as a whole.
        changed: Paths of inner objects of which a request changes the members that it names.

    Raises:
        OjsError: invalid_payload or invalid_request for a value that can't be kept.

    """
    found: Extensions = {}
    emptied: list[str] = []

    def look(inside: Mapping[str, Raw], path: str) -> None:
        for name, raw in inside.items():
            place = path + name
            if is_extension(name):
                value_of(raw, place, limits)
                found[place] = raw
            elif place in replaced or place in changed:
                if place in replaced or absent(raw):
                    emptied.append(place)
                if bytes(memoryview(raw)[:1]) == b"{":
                    look(members_of(raw, place), f"{place}.")

    look(members, "")
    return SentExtensions(found, tuple(emptied))


def may_have_extensions(body: bytes) -> bool:
    """Return whether the name of a member begins as those of extensions do; written with escapes it doesn't count."""
    return any(mark in body for mark in _MARKS)


def extensions_in(body: bytes, limits: PayloadLimits, *, replaced: Collection[str] = ()) -> Extensions:
    """Return the members of extensions of a new document, whose body has been read. `replaced` and what is raised are as of
    `sent_extensions`.
    """
    if not may_have_extensions(body):
        return {}
    return sent_extensions(_decode_object(body), limits, replaced=replaced).over({}, limits)


def check_extra(members: Mapping[str, Raw], limits: PayloadLimits) -> None:
    """Refuse more, or larger, members that OJS doesn't define than one document may have.

    Raises:
        OjsError: invalid_request for their number, metadata_too_large for their size. Both name a member.

    """
    if len(members) > limits.max_extra_members:
        one_too_many = [*members][limits.max_extra_members][:64]
        raise invalid(
            one_too_many,
            f"{one_too_many} is one of {len(members)} members that OJS does not define; "
            f"the limit is {limits.max_extra_members}",
            hint="Put several of them into one object.",
        )
    size = sum(len(name) + len(raw) for name, raw in members.items())
    if size > limits.max_metadata_bytes:
        largest = max(members, key=lambda name: len(members[name]))[:64]
        raise OjsError(
            "metadata_too_large",
            f"members that OJS does not define are {size} bytes, most of them in {largest}; "
            f"the limit is {limits.max_metadata_bytes} bytes",
            hint=f"Keep what is large in {largest} elsewhere, and send where it is.",
            details={"field": largest, "actual_bytes": size, "max_bytes": limits.max_metadata_bytes},
        )
