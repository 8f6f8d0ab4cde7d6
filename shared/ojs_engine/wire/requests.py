"""Bodies of requests by the contract's structs, and what is said of one that doesn't fit (docs/adr/147)."""

from __future__ import annotations

import json
import math
import re
import types
from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from msgspec import Meta, Raw, Struct
from msgspec.json import encode
from msgspec.structs import fields

from ojs_engine.base.errors import OjsError, invalid
from ojs_engine.base.extensions import may_have_extensions
from ojs_engine.base.fields import check_once, checked, is_extension, kind_of, mistyped, object_of, shown, struct_of

_Body = TypeVar("_Body", bound=Struct)
_Hint = Any

_PATH: Final = re.compile(r" - at `\$\.?(.*)`$")
_MISSING: Final = re.compile(r"missing required field `(.*?)`")
_STEP: Final = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]")
_LONGEST: Final = 30
"""Digits of an integer that a refusal may show."""


def request_of(body: bytes, kind: type[_Body]) -> _Body:
    """Return a request's body as `kind`. Null members are absent ones, and members of extensions pass.

    Raises:
        OjsError: invalid_payload for malformed JSON; invalid_request, which names the member, its bounds and what was
            sent; `unsupported` for a member that only the specification has.

    """
    body = body or b"{}"  # what a request needs is named
    checked(body)
    if may_have_extensions(body):
        body = _without_extensions(check_once(body), kind)
    sent = struct_of(body, kind, refused=lambda error: _refusal(error, body, kind))
    _check_supported(sent, "")
    return sent


def plain_request_of(body: bytes, kind: type[_Body]) -> _Body:
    """Return the body of a request that takes any other members, too, as `kind`. Null members are absent ones.

    Raises as `request_of`. It costs no more than the decoding.
    """
    return struct_of(body, kind, refused=lambda error: _refusal(error, body, kind))


def _without_extensions(body: bytes | Raw, kind: type[Struct]) -> bytes:
    """Return an object without the members of extensions, those of its inner structs included; all others stay as they are."""
    inner = _structs(kind)
    return encode(
        {
            name: Raw(_without_extensions(raw, inner[name])) if name in inner and bytes(memoryview(raw)[:1]) == b"{" else raw
            for name, raw in object_of(bytes(body)).items()
            if not is_extension(name)
        }
    )


@cache
def _structs(kind: type[Struct]) -> dict[str, type[Struct]]:
    """Return the members of a struct that are structs, by their names in JSON."""
    hints = get_type_hints(kind, include_extras=True)
    return {field.encode_name: each for field in fields(kind) for each in kinds_of(hints[field.name]) if _is_struct(each)}


def _refusal(error: Exception, body: bytes, kind: type[Struct]) -> OjsError:
    """Return what is said of a member that doesn't fit its type."""
    where, missing = _PATH.search(str(error)), _MISSING.search(str(error))
    path = ".".join(filter(None, (where[1] if where else "", missing[1] if missing else "")))
    if not path or "unknown field" in str(error):
        return mistyped(error)
    try:
        hint, value = _at(kind, _decoded(body.decode()), path)
    except RecursionError:
        return mistyped(error)
    words, canonical = what_is_wanted(hint), note_of(hint, "canonical")
    if value is None:
        return invalid(path, f"{path} is required: {words}", canonical=canonical)
    if note_of(hint, "secret"):
        said = ""
    elif isinstance(value, float) and not math.isfinite(value):
        said = ", not a number beyond what this server reads"
    elif isinstance(value, list) and any(_origin(each) is list for each in kinds_of(hint)):
        said = f"; it has {len(value)}"
    else:
        said = f", not {kind_of(value) if _is_structured(hint) else shown(value)}"
    return invalid(path, f"{path} must be {words}{said}", canonical=canonical)


_decoded: Final = json.JSONDecoder(parse_int=lambda text: int(text) if len(text) <= _LONGEST else math.inf).decode


def _at(kind: _Hint, value: Any, path: str) -> tuple[_Hint, Any]:
    """Return the type of a member, and what was sent there; None if it is missing."""
    hint: _Hint = kind
    for name, place in _STEP.findall(path):
        bare: Any = next((each for each in kinds_of(hint) if _is_structured(each)), None)
        if place:
            hint, value = get_args(bare)[0], value[int(place)]
        else:
            field = dict(zip(bare.__struct_encode_fields__, bare.__struct_fields__, strict=True))[name]
            hint, value = get_type_hints(bare, include_extras=True)[field], value.get(name)
    return hint, value


def _origin(hint: _Hint) -> Any:
    return get_origin(hint)


def kinds_of(hint: _Hint) -> Iterator[_Hint]:
    """Yield the types that a type is one of, without notes and null."""
    origin = _origin(hint)
    if origin is Annotated:
        yield from kinds_of(get_args(hint)[0])
    elif origin in {Union, types.UnionType}:
        for each in get_args(hint):
            yield from kinds_of(each)
    elif hint is not types.NoneType:
        yield hint


def _is_structured(hint: _Hint) -> bool:
    return any(_is_struct(each) or _origin(each) in {list, tuple, dict} for each in kinds_of(hint))


def _is_struct(hint: _Hint) -> bool:
    return isinstance(hint, type) and issubclass(hint, Struct)


def notes_of(hint: _Hint) -> Iterator[Meta]:
    """Yield the notes of a type, those of a type that may be null included."""
    if _origin(hint) is Annotated:
        inner, *notes = get_args(hint)
        yield from (note for note in notes if isinstance(note, Meta))
        yield from notes_of(inner)
    elif _origin(hint) in {Union, types.UnionType}:
        kinds = [each for each in get_args(hint) if each is not types.NoneType]
        if len(kinds) == 1:
            yield from notes_of(kinds[0])


def note_of(hint: _Hint, name: str) -> Any:
    """Return what the notes of a type say under a name; None if they don't."""
    return next((note.extra[name] for note in notes_of(hint) if note.extra and name in note.extra), None)


def what_is_wanted(hint: _Hint) -> str:
    """Return the words for what a member has to be: its own, or those of its types and bounds."""
    if words := note_of(hint, "wanted"):
        return str(words)
    if _origin(hint) in {Union, types.UnionType}:
        kinds = [what_is_wanted(each) for each in get_args(hint) if each is not types.NoneType]
        return " or ".join(dict.fromkeys(kinds))
    kind, *others = kinds_of(hint)
    return what_is_wanted(get_args(hint)[0]) if others else _words(kind, list(notes_of(hint)))


def _words(kind: _Hint, notes: list[Meta]) -> str:
    least, most = _bound(notes, "min_length"), _bound(notes, "max_length")
    low, high = _bound(notes, "ge"), _bound(notes, "le")
    if _origin(kind) is Literal:
        return f"one of {', '.join(map(str, get_args(kind)))}"
    if _origin(kind) in {list, tuple}:
        return f"a list, each {what_is_wanted(get_args(kind)[0])}"
    if kind is bool:
        return "true or false"
    if kind is str:
        size = "" if most is None else f" of {least} to {most} characters" if least else f" of at most {most} characters"
        return f"a text{size}"
    if kind in {int, float}:
        number = "an integer" if kind is int else "a number"
        if low is not None and high is not None:
            return f"{number} from {low} to {high}"
        return number if low is None else f"{number} of {low} or more"
    return "JSON" if kind in {Any, Raw} else "an object"


def _bound(notes: list[Meta], name: str) -> Any:
    return next((value for note in notes if (value := getattr(note, name)) is not None), None)


@cache
def _members(kind: type[Struct]) -> tuple[tuple[str, str, str | None], ...]:
    """Return the members that may be unsupported, or have such members: attribute, name, and why it is."""
    hints = get_type_hints(kind, include_extras=True)
    names = zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True)
    found = [(field, name, note_of(hints[field], "unsupported")) for field, name in names]
    return tuple(each for each in found if each[2] or any(map(_is_struct, kinds_of(hints[each[0]]))))


def _check_supported(sent: Struct, path: str) -> None:
    for field, name, reason in _members(type(sent)):
        value = getattr(sent, field)
        if isinstance(value, Struct):
            _check_supported(value, f"{path}{name}.")
        elif value is not None and reason:
            raise OjsError("unsupported", f"{path}{name} {reason}", details={"field": f"{path}{name}"})
