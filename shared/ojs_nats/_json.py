"""JSON from outside and for outside: what can't be read or written is told in one way, however it can't."""

from __future__ import annotations

from typing import Any, TypeVar, overload

import msgspec

from ojs_nats._errors import InvalidRequest

T = TypeVar("T")


@overload
def decoded(text: bytes | str, kind: type[T]) -> T: ...
@overload
def decoded(text: bytes | str, kind: Any = ...) -> Any: ...
def decoded(text: bytes | str, kind: Any = Any) -> Any:
    """Return what a text says. Raises msgspec.MsgspecError, also where it is no Unicode or nested too deeply."""
    try:
        return msgspec.json.decode(text, type=kind)
    except UnicodeError:
        raise msgspec.DecodeError("it is not valid UTF-8") from None
    except RecursionError:
        raise msgspec.DecodeError("it is nested too deeply") from None


def encoded(value: Any) -> bytes:
    """Return a request's value as JSON.

    Raises InvalidRequest where the server could only refuse it, TypeError for what is no JSON.
    """
    try:
        return msgspec.json.encode(value)
    except UnicodeError:
        raise _invalid("a text in it is not Unicode") from None
    except RecursionError:
        raise _invalid("it is nested too deeply") from None


def _invalid(reason: str) -> InvalidRequest:
    return InvalidRequest("invalid_payload", f"this can't be sent: {reason}", status=400)
