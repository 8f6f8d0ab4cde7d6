"""The first steps of reading any request body, and the words for what is wrong with a field."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw, Struct

from ojs_engine.base.errors import OjsError, invalid, too_large
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.base.times import parse_duration_ms, parse_timestamp

_Body = TypeVar("_Body", bound=Struct)
C = TypeVar("C", bound=str)

_NULL: Final = Raw(b"null")
_members: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_value: Final = msgspec.json.Decoder().decode
_WHERE: Final = re.compile(r" - at `(key in )?\$\.?(.*)`$")
_TYPES: Final = re.compile(r"(Expected|got) `([^`]*)`")
_UNKNOWN: Final = re.compile(r"unknown field `(.*?)`")
_QUEUE: Final = re.compile(r"[a-z0-9][a-z0-9.\-]*", re.ASCII)
_CUT_OFF: Final = "Input data was truncated"
_EXTENSIONS: Final = ("ext_", "x_")
_MOST_EXTENSIONS: Final = 101
_PRIORITIES: Final = {"high": 10, "normal": 0, "low": -10}
_KINDS: Final = {
    str: "a text",
    int: "a number",
    float: "a number",
    bool: "true or false",
    dict: "an object",
    list: "an array",
    type(None): "null",
}
_TYPE_WORDS: Final = {
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "object": "an object",
    "array": "an array",
}
"""What msgspec calls types, in the words of other messages."""
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


# Bodies


def object_of(body: bytes) -> dict[str, Raw]:
    """The members of a request body, each still undecoded; raises invalid_payload if it is no sound JSON object."""
    checked(body)
    try:
        return _members(body)
    except msgspec.ValidationError:
        raise OjsError("invalid_payload", "the request body must be a JSON object") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _malformed(error) from None


def parse_nothing(body: bytes) -> None:
    """Refuse a body that is no sound JSON object, where none is needed. Raises invalid_payload."""
    if body:
        object_of(body)


def mistyped(error: Exception, path: str = "") -> OjsError:
    """Return the error of a member that isn't of its type, in msgspec's words; `path` is where the decoded value was."""
    words = _TYPES.sub(_type_words, str(error)).replace("`", "")
    found = _WHERE.search(str(error))
    unknown = _UNKNOWN.search(str(error))
    if unknown is not None:
        return _no_member(".".join([part for part in (path, "" if found is None else found[2], unknown[1]) if part]))
    if found is None and path:
        return invalid(path, f"{path}: {words}")
    if found is None:
        return OjsError("invalid_payload", f"the request body must be a JSON object: {words}")
    field = f"{path}.{found[2]}" if path else found[2]
    return invalid(field, f"{field}: {words[: words.rindex(' - at ')]}")


def struct_of(
    body: bytes, kind: type[_Body], *, strict: bool = True, refused: Callable[[Exception], OjsError] = mistyped
) -> _Body:
    """A request body of known members as `kind`; an empty body counts as `{}`. Null members are absent ones. Without `strict`
    texts stand for numbers and flags, as in a query string. `refused` says what is wrong with a member.

    Raises invalid_payload for malformed JSON, invalid_request naming the member that has the wrong type.
    """
    if not body:
        return kind()
    checked(body)
    if kind.__struct_config__.forbid_unknown_fields:
        check_once(body)
    for _ in range(_MOST_EXTENSIONS):
        try:
            return msgspec.json.decode(body, type=kind, strict=strict)
        except msgspec.ValidationError as error:
            if (unknown := _extension(error)) is None:
                raise refused(error) from None
            body = _taken_out(body, unknown)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise _malformed(error) from None
    raise _too_many_extensions()


def _too_many_extensions() -> OjsError:
    return OjsError("invalid_payload", f"the request has more than {_MOST_EXTENSIONS - 1} members of extensions")


def _extension(error: msgspec.ValidationError) -> list[str] | None:
    """Return the path of the member that a request doesn't have; None unless it is one of an extension."""
    unknown = _UNKNOWN.search(str(error))
    if unknown is None or not is_extension(unknown[1]):
        return None
    found = _WHERE.search(str(error))
    return [*(found[2].split(".") if found is not None and found[2] else []), unknown[1]]


def _pruned(value: Any, path: Sequence[str]) -> Any:
    """Return a decoded object without the member at a path."""
    name, *rest = path
    if rest:
        return {**value, name: _pruned(value[name], rest)}
    return {other: member for other, member in value.items() if other != name}


def _taken_out(body: bytes, path: Sequence[str]) -> bytes:
    """Return an object without the member at a path; all others stay as they were sent."""
    members = _members(body)
    name, *rest = path
    if rest:
        members[name] = Raw(_taken_out(bytes(members[name]), rest))
    else:
        del members[name]
    return msgspec.json.encode(members)


def converted(value: Any, path: str, kind: type[_Body]) -> _Body:
    """A decoded member of a request as `kind`. Raises invalid_request naming the member of it that is wrong."""
    for _ in range(_MOST_EXTENSIONS):
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            if (unknown := _extension(error)) is None:
                raise mistyped(error, path) from None
            value = _pruned(value, unknown)
    raise _too_many_extensions()


def checked(body: bytes) -> None:
    """Refuse a body that is empty or not UTF-8."""
    if not body or body.isspace():
        raise OjsError("invalid_payload", "the request body is empty")
    if not body.isascii():  # msgspec leaves the inside of Raw members unchecked
        try:
            str(body, "utf-8")
        except UnicodeDecodeError:
            raise OjsError("invalid_payload", "the request body is not valid UTF-8") from None


def check_once(body: bytes) -> bytes:
    """Return a body in which no object names a member twice. Raises invalid_request naming the member.

    Readers differ in which of both counts: who looks at a request ahead of the server may see another one. This takes
    longer than reading the body, so it is for requests that are rare and change much or many (docs/adr/047).
    """
    try:
        _members_once(str(body, "utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        pass  # whoever reads it says what is wrong with it
    return body


def _once(members: list[tuple[str, Any]]) -> None:
    names = [name for name, _ in members]
    if len(set(names)) == len(names):
        return
    double = next(name for at, name in enumerate(names) if name in names[:at])[:64]
    double = double.encode(errors="replace").decode()  # it may have half of a surrogate pair, which no answer can hold
    raise invalid(double, f"{double} stands twice in one object of the request: leave one out")


_members_once: Final = json.JSONDecoder(object_pairs_hook=_once, parse_int=len, parse_float=len).decode


def _malformed(error: Exception) -> OjsError:
    if isinstance(error, RecursionError):
        return OjsError("invalid_payload", "the request body is nested too deeply")
    if isinstance(error, UnicodeDecodeError):
        return OjsError("invalid_payload", "the request body is not valid UTF-8")
    words = str(error).removeprefix("JSON is malformed: ")
    if words == _CUT_OFF:  # msgspec says so of "\\ud83d" without its other half, too
        words = "it is cut off, or a text has half of a surrogate pair"
    return OjsError("invalid_payload", f"the request body is not valid JSON: {words}")


def _type_words(found: re.Match[str]) -> str:
    """`Expected str | null` as "expected a text": null is as good as nothing everywhere."""
    types = [one for one in found[2].split(" | ") if one != "null"] or ["null"]
    return f"{found[1].lower()} {' or '.join(_TYPE_WORDS.get(one, one) for one in types)}"


def _no_member(field: str) -> OjsError:
    return invalid(field[:64], f"{field[:64]} is not a member of this request")


# Lists

_SURELY_QUICK: Final = 200_000
"""Members that a list may have to be taken apart in one go, which holds up everybody for 60 ns each."""
_TOKEN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{},]')
_items: Final = msgspec.json.Decoder(list[Raw]).decode


def items_of(raw: Raw, path: str, most: int) -> list[Raw]:
    """The members of a list, undecoded; of one with more than `most` it may be only the first `most + 1`.

    Raises invalid_request, invalid_payload.
    """
    data = bytes(raw)
    if data.count(b",") >= _SURELY_QUICK:
        data = _first_items(data, most + 1)
    try:
        return _items(data)
    except msgspec.ValidationError as error:
        raise mistyped(error, path) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _malformed(error) from None


def _first_items(data: bytes, number: int) -> bytes:
    """A list cut after so many members. It was found to be sound JSON before; what is no list is left alone."""
    depth = seen = 0
    for token in _TOKEN.finditer(data):
        match token[0]:
            case b"[" | b"{":
                depth += 1
            case b"]" | b"}":
                depth -= 1
            case b"," if depth == 1:
                seen += 1
                if seen == number:
                    return data[: token.start()] + data[-1:]
            case _:
                pass
    return data


# Members


def is_extension(name: str) -> bool:
    """Return whether a member belongs to an extension of the protocol, and is no misspelt one (OJS JSON §14.3)."""
    return name.startswith(_EXTENSIONS)


def check_known(members: Iterable[str], known: Collection[str]) -> None:
    """Refuse what a request doesn't have: left unread, a misspelt member would do more than was meant.

    Members of extensions pass.
    """
    for name in members:
        if name not in known and not is_extension(name.rpartition(".")[2]):
            raise _no_member(name)


def value_of(raw: Raw, path: str, limits: PayloadLimits) -> Any:
    """One member decoded as a whole. Raises invalid_request, invalid_payload if it is nested deeper than `max_depth`."""
    try:
        value = _value(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise invalid(path, f"{path} holds a value outside JSON's or this server's range: {error}") from None
    if len(raw) > 2 * limits.max_depth and type(value) in (dict, list):
        _check_depth(bytes(raw), value, path, limits)
    return value


def _check_depth(text: bytes, value: Any, path: str, limits: PayloadLimits) -> None:
    if text.count(b"[") + text.count(b"{") <= limits.max_depth:
        return
    level, depth = [value], 1
    while level := [
        item
        for parent in level
        for item in (parent.values() if type(parent) is dict else parent)
        if type(item) is dict or type(item) is list
    ]:
        depth += 1
        if depth > limits.max_depth:
            raise OjsError("invalid_payload", f"{path} is nested deeper than {limits.max_depth} levels")


def members_of(raw: Raw, path: str) -> dict[str, Raw]:
    """The members of a nested object, undecoded."""
    try:
        return _members(raw)
    except msgspec.ValidationError:
        raise invalid(path, f"{path} must be an object") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _malformed(error) from None


def absent(raw: Raw) -> bool:
    """Whether an undecoded member was left out or is null, which is the same."""
    return not raw or raw == _NULL


def shown(value: Any) -> str:
    """A client's value as a message shows it: as short JSON on one line; a list or an object is only named."""
    if isinstance(value, dict | list):
        return kind_of(value)
    if isinstance(value, str):  # a header's value may have halves of surrogate pairs, which no answer can hold
        value = value[:81].encode(errors="replace").decode()
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 80 else text[:77] + "..."


def kind_of(value: Any) -> str:
    """What a client's value is, for messages about members that may hold what nobody else should read."""
    return _KINDS[type(value)]


def below(path: str, name: str) -> str:
    """The path of a member that a client has named as it liked, cut to what fits into a message."""
    return f"{path}.{name[:64]}" if path else name[:64]


def integer(value: Any, path: str, low: int, high: int) -> int:
    """A whole number within [low, high]; 5.0 counts as one."""
    if type(value) is float and value.is_integer():
        value = int(value)
    if type(value) is not int or not low <= value <= high:
        raise invalid(path, f"{path} must be an integer from {low} to {high}, not {shown(value)}")
    return value


def priority_of(value: Any, path: str) -> int:
    """A priority, as a whole number from -100 to 100 or by name."""
    if type(value) is str:
        value = _PRIORITIES.get(value.lower(), value)
    return integer(value, path, -100, 100)


def flag(value: Any, path: str) -> bool:
    """A value that is true or false."""
    if type(value) is not bool:
        raise invalid(path, f"{path} must be true or false, not {shown(value)}")
    return value


def choice(value: Any, path: str, choices: Sequence[C]) -> C:
    """One of some words."""
    for one in choices:
        if value == one:
            return one
    raise invalid(path, f"{path} must be one of {', '.join(choices)}, not {shown(value)}")


def mapping(value: Any, path: str) -> dict[str, Any]:
    """A decoded object."""
    if type(value) is not dict:
        raise invalid(path, f"{path} must be an object, not {kind_of(value)}")
    return value


def milliseconds(value: Any, unit_ms: int, most: int) -> int | None:
    """A number of `unit_ms` milliseconds as milliseconds; None for what is no finite number.

    What is below 0 or above `most` comes as some number that is, however many digits it has.
    """
    if type(value) is int or (type(value) is float and math.isfinite(value)):
        return round(min(max(value, -1), most + 1) * unit_ms)
    return None


def duration_ms(value: Any, path: str, unit_ms: int, limits: PayloadLimits, *, zero: bool = False) -> int:
    """A number of `unit_ms` milliseconds, or a duration as text -> milliseconds; above 0 unless `zero`."""
    if type(value) is str:
        try:
            ms = parse_duration_ms(value)
        except ValueError as problem:
            raise invalid(path, f"{path} is {problem}: {shown(value)}") from None
    elif (number := milliseconds(value, unit_ms, limits.max_duration_ms)) is not None:
        ms = number
    else:
        raise invalid(path, f"{path} must be a number or a duration, not {shown(value)}")
    if ms < 0 or (ms == 0 and not zero) or ms > limits.max_duration_ms:
        bound = "0 or more" if zero else "more than 0"
        days = limits.max_duration_ms // 86_400_000
        raise invalid(path, f"{path} must be {bound} and at most {days} days, not {shown(value)}")
    return ms


def timestamp(text: str | None, path: str) -> int | None:
    """An RFC 3339 timestamp as Unix ms; None if it is left out or empty."""
    if not text:
        return None
    try:
        return parse_timestamp(text)
    except ValueError as problem:
        raise invalid(path, f"{path} must be an RFC 3339 timestamp with a zone, not {shown(text)}: {problem}") from None


def before_ms(value: str | float, path: str, now: int, limits: PayloadLimits) -> int:
    """`older_than`: an RFC 3339 timestamp, or an age (`7d`, `PT1H`, a number of seconds) -> Unix ms."""
    if isinstance(value, str):
        try:
            return parse_timestamp(value)
        except ValueError:
            pass
    return now - duration_ms(value, path, 1_000, limits)


def short_text(value: Any, path: str, limits: PayloadLimits) -> str:
    """A text of 1 to `max_text_chars` characters without control characters."""
    if type(value) is not str or not 0 < len(value) <= limits.max_text_chars or _CONTROL.search(value):
        raise invalid(path, f"{path} must be a text of 1 to {limits.max_text_chars} printable characters, not {shown(value)}")
    return value


def text_list(value: Any, path: str, most: int, limits: PayloadLimits) -> tuple[str, ...]:
    """A list of at most `most` short texts."""
    if type(value) is not list:
        raise invalid(path, f"{path} must be a list of texts, not {shown(value)}")
    if len(value) > most:
        raise invalid(path, f"{path} has {len(value)} entries; the limit is {most}")
    return tuple([short_text(item, f"{path}[{index}]", limits) for index, item in enumerate(value)])


def queue_name(value: Any, path: str, limits: PayloadLimits) -> str:
    """A queue name: lower-case letters, digits, `-` and `.`, starting with a letter or digit."""
    if type(value) is str:
        if _QUEUE.fullmatch(value) and len(value) <= limits.max_queue_bytes:
            return value
        if len(value.encode()) > limits.max_queue_bytes:
            raise _too_long("queue_name_too_long", path, value, limits.max_queue_bytes)
    raise invalid(
        path,
        f"{path} must match ^[a-z0-9][a-z0-9\\-.]*$ (lower-case letters, digits, '-' and '.'), not {shown(value)}",
        canonical="INVALID_QUEUE",
    )


def queue_names(values: Sequence[str], path: str, limits: PayloadLimits) -> tuple[str, ...]:
    """At most `max_queues` queue names, doubles left out."""
    if len(values) > limits.max_queues:
        raise invalid(path, f"{path} has {len(values)} entries; the limit is {limits.max_queues}")
    names = [queue_name(value, f"{path}[{index}]", limits) for index, value in enumerate(values)]
    return tuple(dict.fromkeys(names))


def _too_long(code: str, path: str, value: str, limit: int) -> OjsError:
    return too_large(code, path, len(value.encode()), limit)
