"""Values of other libraries: pydantic's models, numpy's numbers and arrays, and collections that msgspec doesn't know.

Neither library is imported here: a value or a hint of theirs exists only where somebody else has imported it.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import sys
from array import array
from collections import deque
from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, Sequence, ValuesView
from collections.abc import Set as AbstractSet
from typing import Any, Final, get_args, get_origin, get_type_hints, is_typeddict

import msgspec

_LONGEST: Final = 500
"""The longest part of an error's text, in characters."""
_STARS: Final = "**********"
"""How pydantic writes a secret."""
_MARKS: Final = ("__get_pydantic_core_schema__", "__pydantic_validator__")
"""The attribute of a class that pydantic reads: a model, one of its dataclasses, one of its types."""
_ANNOTATIONS: Final = frozenset({"annotated_types", "pydantic"})
_UNWRITABLE: Final = "mMcV"
"""Kinds of numpy's types: times, which have no zone and may have nanoseconds; complex numbers; records."""
_BASES: Final[Mapping[type, Callable[[Any], Any]]] = {
    str: str.__str__,
    int: int.__pos__,
    float: float.__pos__,
    bytes: bytes,
    bytearray: bytes,
}
"""The functions that make a plain value of one of a subclass."""


# To JSON


def written(value: Any) -> Any:
    """Return a value in dicts, lists, texts and numbers, where msgspec alone can't. What JSON can't hold, as NaN, stays in.

    Raises TypeError or ValueError for what can't be written. A model of pydantic's has the names that other languages know,
    its aliases, and no computed fields: they are computed again.
    """
    return _dumped(value) if _of_pydantic(type(value)) else msgspec.to_builtins(value, enc_hook=known)


def known(value: Any) -> Any:
    """Return what msgspec can write in the place of a value that it can't. Raises TypeError if there is nothing.

    This is an `enc_hook` of msgspec.
    """
    if _of_pydantic(type(value)):
        return _dumped(value)
    numpy = _numpy()
    if numpy is not None and isinstance(value, numpy.ndarray | numpy.generic):
        return _of_numpy(value)
    for base, plain in _BASES.items():
        if isinstance(value, base):
            return plain(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence | AbstractSet | KeysView | ValuesView | ItemsView | deque | array):
        return list(value)
    raise TypeError(f"Encoding objects of type {type(value).__qualname__} is unsupported")


def unwrapped(key: Any) -> Any:
    """Return a number or text of numpy's as Python's, anything else as it is. Raises TypeError for what JSON can't hold."""
    numpy = _numpy()
    return _of_numpy(key) if numpy is not None and isinstance(key, numpy.generic) else key


def _dumped(model: Any) -> Any:
    reading = adapter(type(model))
    if reading is None:
        raise TypeError(f"pydantic can't write objects of type {type(model).__qualname__}")
    found = reading.dump_python(model, mode="json", by_alias=True, round_trip=True, warnings=False)
    if _STARS in repr(found) and _is_other(reading, found, model):
        raise TypeError(
            "it has a secret, of which pydantic writes nothing but stars: give its field a serializer that reveals it, "
            "or leave it out by Field(exclude=True)"
        )
    return found


def _is_other(reading: Any, found: Any, model: Any) -> bool:
    try:
        return bool(validated(reading, found) != model)
    except msgspec.ValidationError:
        return True


def _of_numpy(value: Any) -> Any:
    if value.dtype.kind in _UNWRITABLE:
        raise TypeError(f"JSON has nothing like numpy's {value.dtype}: send a text or a datetime, by astype(str) or item()")
    if value.dtype.kind == "f" and value.dtype.itemsize > 8:
        raise TypeError(f"numpy's {value.dtype} has more digits than other languages read: send float(…) of it, or a text")
    return value.tolist()


# From JSON


def reader(hint: Any) -> Callable[[Any], Any]:
    """Return what makes a value of JSON one of the hint's type.

    It raises msgspec.ValidationError for one that isn't. By pydantic, if the hint has something of pydantic's.
    """
    reading = adapter(hint)
    if reading is not None:
        return functools.partial(validated, reading)
    return functools.partial(msgspec.convert, type=hint, str_keys=True, dec_hook=_made)


def validated(reading: Any, value: Any) -> Any:
    """Return what pydantic makes of a value of JSON. Raises msgspec.ValidationError, which says nothing of the value."""
    pydantic: Any = _pydantic()
    try:  # as JSON: strict models take a date's text from nothing else
        return reading.validate_json(msgspec.json.encode(value))
    except pydantic.ValidationError as error:
        raise msgspec.ValidationError(_told(error)) from None


def adapter(hint: Any) -> Any:
    """Return pydantic's TypeAdapter for a hint that has something of pydantic's in it.

    None for any other, and for one that pydantic doesn't know, as of a msgspec.Struct. Raises TypeError for a model that isn't
    fully defined.
    """
    if _pydantic() is None:
        return None
    try:
        return _adapter(hint, repr(hint))
    except TypeError:  # the hint has no hash
        return _adapter.__wrapped__(hint, "")


@functools.lru_cache(512)
def _adapter(hint: Any, _order: str) -> Any:
    """Return it. `_order` tells `A | B` from `B | A`, which are equal."""
    if not any(map(_of_pydantic, parts(hint))):
        return None
    pydantic: Any = _pydantic()
    try:
        made = pydantic.TypeAdapter(hint)
        if not getattr(made, "pydantic_complete", True):
            made.rebuild(raise_errors=True)
    except pydantic.PydanticUserError:
        return None
    except pydantic.PydanticUndefinedAnnotation as error:
        raise TypeError(f"a model of it isn't complete, since the name {error.name!r} is not defined yet") from None
    return made


def stand_in(kind: Any) -> tuple[Any, Callable[[Any], Any]] | None:
    """Return the hint of JSON that stands for a type which msgspec doesn't know, and what makes one of the other.

    None if there is none.
    """
    origin = get_origin(kind) or kind
    if _of_pydantic(origin):
        reading = adapter(kind)
        return None if reading is None else (Any, functools.partial(validated, reading))
    if origin is deque:
        return list[(get_args(kind) or (Any,))[0]], deque  # type: ignore[misc]
    numpy = _numpy()
    if numpy is None or not isinstance(origin, type) or origin not in numpy.sctypeDict.values():
        return None
    pairs = ((numpy.bool_, bool), (numpy.integer, int), (numpy.floating, float), (numpy.str_, str))
    found = next((of_json for of_numpy, of_json in pairs if issubclass(origin, of_numpy)), None)
    return None if found is None else (found, functools.partial(_scalar, numpy, origin))


def _made(kind: Any, value: Any) -> Any:
    """Return a value of a type that msgspec doesn't know: its `dec_hook`."""
    found = stand_in(kind)
    if found is None:
        return value
    hint, make = found
    try:
        return make(msgspec.convert(value, hint, str_keys=True, dec_hook=_made))
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None  # msgspec says where that is


def _scalar(numpy: Any, kind: Any, value: Any) -> Any:
    try:
        with numpy.errstate(all="ignore"):
            found = kind(value)
    except OverflowError:
        found = None
    if found is None or (isinstance(value, int) and found != value) or (isinstance(value, float) and not math.isfinite(found)):
        raise ValueError(f"Expected `{kind.__name__}`, got a larger number")
    return found


# Hints


def parts(hint: Any) -> Iterator[Any]:
    """Yield a hint and what it is made of: what stands in its brackets, and the fields of classes."""
    waiting = [hint]
    seen: dict[int, Any] = {}
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen[id(part)] = part  # kept, so that its id is no other's
        yield part
        origin = get_origin(part)
        waiting += [origin, *get_args(part)] if origin is not None else _fields(part)


def _fields(kind: Any) -> list[Any]:
    if not isinstance(kind, type) or _of_pydantic(kind):
        return []
    named = dataclasses.is_dataclass(kind) or is_typeddict(kind) or issubclass(kind, msgspec.Struct) or hasattr(kind, "_fields")
    try:
        return [*get_type_hints(kind, include_extras=True).values()] if named else []
    except Exception:  # noqa: BLE001  # one that can't be resolved: msgspec says so
        return []


def _of_pydantic(kind: Any) -> bool:
    """Return whether it is a class that pydantic reads, or what it lays into `Annotated`."""
    if isinstance(kind, type):
        return _pydantic() is not None and any(hasattr(kind, mark) for mark in _MARKS)
    return type(kind).__module__.partition(".")[0] in _ANNOTATIONS


def _numpy() -> Any:
    """Return numpy, if somebody has imported it."""
    module = sys.modules.get("numpy")
    return module if hasattr(module, "sctypeDict") else None


def _pydantic() -> Any:
    """Return pydantic, if somebody has imported it; its first version can't do what is needed here."""
    module = sys.modules.get("pydantic")
    return module if hasattr(module, "TypeAdapter") else None


def _told(error: Any) -> str:
    first, *more = error.errors(include_url=False, include_context=False, include_input=False)
    said = first["msg"] if first["type"] != "union_tag_invalid" else "Input tag is none of the expected tags"  # that has it
    said = said if len(said) <= _LONGEST else f"{said[:_LONGEST]}…"
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])
    return f"{said}{f' - at `${place}`' if place else ''}{f' (and {len(more)} more)' if more else ''}"
