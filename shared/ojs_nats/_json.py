"""JSON from outside: what can't be read is told in one way, however it can't. `_plain` has the way out."""

from __future__ import annotations

from typing import Any, TypeVar, overload

import msgspec

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
