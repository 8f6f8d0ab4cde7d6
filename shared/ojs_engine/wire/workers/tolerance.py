"""Reports of workers, read as far as they can be: what one says of a job counts more than a side member of the wrong type.

A refused report leaves its job to hang until the lease ends, so a member that isn't what it should be is read as what it
plainly means, else left out with a warning (docs/adr/047). What comes as described is read in one go, at no cost.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct

from ojs_engine.base.errors import OjsError, invalid
from ojs_engine.base.fields import absent, kind_of, members_of, object_of, struct_of
from ojs_engine.wire.members import AnswerWarning
from ojs_engine.wire.requests import kinds_of

_Body = TypeVar("_Body", bound=Struct)
_T = TypeVar("_T")


def read_report(body: bytes, kind: type[_Body], essential: Collection[str], told: list[AnswerWarning]) -> _Body:
    """A request body as `kind`; what had to be left out goes into `told`.

    Raises invalid_payload for what is no JSON object, invalid_request if an `essential` member has the wrong type.
    """
    try:
        return struct_of(body, kind)
    except OjsError as error:
        if error.code != "invalid_request":
            raise
        return _mended(object_of(body), kind, essential, told, "")


def side(read: Callable[[], _T], otherwise: _T, told: list[AnswerWarning]) -> _T:
    """What `read` makes of a side member; `otherwise`, with a warning, if it would refuse the request for it."""
    try:
        return read()
    except OjsError as problem:
        told.append(AnswerWarning(problem.details.get("field", ""), f"{problem.message}; it was left out"))
        return otherwise


def _mended(sent: dict[str, Raw], kind: type[_Body], essential: Collection[str], told: list[AnswerWarning], base: str) -> _Body:
    found: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        raw = sent.get(field.encode_name, Raw())
        if absent(raw):
            continue
        path = base + field.encode_name
        try:
            found[field.name] = msgspec.json.decode(raw, type=field.type)
        except msgspec.ValidationError:
            nested = _struct_in(field.type)
            if nested is not None and bytes(raw).lstrip().startswith(b"{"):
                found[field.name] = _mended(members_of(raw, path), nested, (), told, f"{path}.")
                continue
            what = "a number of that size"  # nothing else is sound JSON and can't be decoded
            try:
                value = msgspec.json.decode(raw)
                what = kind_of(value)
                found[field.name] = _plainly(value, field.type)
            except msgspec.ValidationError:
                if path in essential:
                    raise invalid(path, f"{path} can't be {what}") from None
                told.append(AnswerWarning(path, f"{path} can't be {what}; it was left out"))
    return kind(**found)


def _struct_in(kind: Any) -> type[Struct] | None:
    return next((one for one in kinds_of(kind) if isinstance(one, type) and issubclass(one, Struct)), None)


def _plainly(value: Any, kind: Any) -> Any:
    """A number as text, a text that is a number or a flag as that, of a list those entries that are texts.

    Raises msgspec.ValidationError.
    """
    if type(value) is list:
        texts = [item for item in value if type(item) is str]
        if not texts:
            raise msgspec.ValidationError
        return msgspec.convert(texts, kind)
    if type(value) is float and value.is_integer():
        value = int(value)
    try:
        return msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError:
        if type(value) not in (int, float):
            raise
        return msgspec.convert(str(value), kind)
