"""JSON of what programs send: arguments, options, results, checkpoints. What JSON can't hold is refused, not changed."""

from __future__ import annotations

import enum
import math
from typing import Any, Final

import msgspec

from ojs_nats import _foreign

DEEPEST: Final = 64
"""How many arrays and objects the server takes inside one another."""
_LONGEST_BITS: Final = 14_000
"""The most bits of an integer that Python writes, and reads again, by its limit of 4,300 digits."""
_RECURSION: Final = 300
"""How deep this module goes where nothing else bounds it."""


def encoded(value: Any, name: str, *, deepest: int | None = DEEPEST) -> bytes:
    """Return the value as JSON. Objects are written as msgspec writes them: dataclasses, dates, UUIDs and enums as well.

    Numbers and texts of a subclass are written as what they are, pydantic's models and numpy's numbers and arrays as
    `_foreign` says. Keys of a dict may be texts,
    integers, enums, UUIDs, dates and finite numbers: they become texts. Raises ValueError for NaN, infinity, half a
    surrogate pair, an integer of more than 4,300 digits, keys that become the same text, and nesting deeper than
    `deepest`, which None leaves to Python; TypeError for other keys and objects. The message names the place, which
    begins with `name`.
    """
    try:
        text = msgspec.json.encode(value)
        read = msgspec.json.decode(text)
        # What is read as it was written has nothing in it that JSON can't hold: no NaN, which is written as null.
        if read == value and (deepest is None or _fits(text, read, deepest)):
            return text
    except Exception:  # noqa: BLE001, S110  # the way below finds the place
        pass
    return msgspec.json.encode(_checked(value, name, _RECURSION if deepest is None else deepest))


def plain(value: Any, name: str) -> Any:
    """Return the value as whoever reads its JSON gets it: of dicts, lists, texts, numbers, True, False and None.

    Raises as `encoded`.
    """
    return msgspec.json.decode(encoded(value, name))


def _fits(text: bytes, read: Any, deepest: int) -> bool:
    """Return whether no more arrays and objects are inside one another."""
    if text.count(b"[") + text.count(b"{") <= deepest:
        return True
    level, depth = [read], 0
    while level := [each for each in level if type(each) is dict or type(each) is list]:
        depth += 1
        if depth > deepest:
            return False
        level = [item for parent in level for item in (parent.values() if type(parent) is dict else parent)]
    return True


def _checked(value: Any, path: str, left: int) -> Any:
    """Return the value with texts as keys and lists as sequences. `left` is how much deeper it may be nested."""
    match value:
        case None | bool() | msgspec.Raw():
            return value
        case enum.Enum():
            return _object(value, path, left)
        case str():
            return _text(value, path)
        case int():
            if value.bit_length() > _LONGEST_BITS:
                raise ValueError(f"{path} is an integer of more than 4,300 digits: send it as a text")
            return int.__pos__(value)
        case float():
            if not math.isfinite(value):
                raise ValueError(f"{path} is {value}, which JSON can't hold: send None, or a text")
            return float.__pos__(value)
        case dict() | list() | tuple() | set() | frozenset():
            if not left:
                raise ValueError(f"{path} is nested too deeply: the server takes {DEEPEST} levels")
            return _members(value, path, left - 1) if isinstance(value, dict) else _items(value, path, left - 1)
        case _:
            return _object(value, path, left)


def _items(value: Any, path: str, left: int) -> list[Any]:
    return [_checked(each, f"{path}[{index}]", left) for index, each in enumerate(value)]


def _members(value: dict[Any, Any], path: str, left: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, member in value.items():
        name = _key(key, path)
        if name in found:
            raise ValueError(f"{path} has two keys that JSON writes as {name!r}")
        found[name] = _checked(member, f"{path}[{key!r}]", left)
    return found


def _key(key: Any, path: str) -> str:
    try:
        key = _foreign.unwrapped(key)
    except TypeError as error:
        raise TypeError(f"{path} has the key {key!r}: {error}") from None
    if isinstance(key, str):
        return str.__str__(_text(key, f"a key of {path}"))
    if isinstance(key, float) and not math.isfinite(key):
        raise ValueError(f"{path} has the key {key}, which JSON can't hold")
    if isinstance(key, int | float) and not isinstance(key, bool | enum.Enum):
        key = int.__pos__(key) if isinstance(key, int) else float.__pos__(key)
    try:
        [name] = msgspec.to_builtins({key: None}, str_keys=True)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{path} has the key {key!r}, and a key in JSON is a text or a number: {error}") from None
    return str(name)


def _text(value: str, path: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{path} has half of a surrogate pair, which JSON can't hold: {value[:80]!a}") from None
    return str.__str__(value)


def _object(value: Any, path: str, left: int) -> Any:
    try:
        found = _foreign.written(value)
    except RecursionError:
        raise ValueError(f"{path} is nested too deeply: the server takes {DEEPEST} levels") from None
    except TypeError as error:
        raise TypeError(f"{path} can't be written as JSON: {error}") from None
    except ValueError as error:
        raise ValueError(f"{path} can't be written as JSON: {error}") from None
    return _checked(found, path, left)
