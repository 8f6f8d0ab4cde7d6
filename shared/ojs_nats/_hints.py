"""Type hints of handlers: what they are, and whether a job's arguments and results can have those types."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final, Never, NoReturn, get_args, get_type_hints

import msgspec
from msgspec.inspect import CustomType, Type, type_info

from ojs_nats import _foreign

_OF_JSON: Final = (dict, list, str, int, float, bool, type(None))
_NO_KEYS: Final = (
    msgspec.inspect.BoolType,
    msgspec.inspect.NoneType,
    msgspec.inspect.CollectionType,
    msgspec.inspect.TupleType,
    msgspec.inspect.NamedTupleType,
    msgspec.inspect.DictType,
    msgspec.inspect.TypedDictType,
    msgspec.inspect.DataclassType,
    msgspec.inspect.StructType,
)


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the hints of a function's parameters and of what it returns. Raises TypeError for one that can't be resolved."""
    try:
        return get_type_hints(function, include_extras=True)
    except Exception as error:  # whatever an annotation raises when it is evaluated
        name, hint = _unresolved(function)
        raise TypeError(
            f"{_called(function)}: the hint {hint!r} of {name!r} can't be resolved ({type(error).__name__}: {error}): "
            "import what it names outside of `if TYPE_CHECKING:`, and define it above the function, at the top of a module"
        ) from error


def check_fillable(function: Callable[..., Any], name: str, hint: Any) -> None:
    """Raise TypeError if no JSON can become a value of that type; `name` is the parameter, or `return`."""
    if hint in {Never, NoReturn}:
        return
    wrong = _unfillable(hint)
    if wrong is not None:
        what = "what it returns" if name == "return" else repr(name)
        raise TypeError(
            f"{_called(function)}: the hint of {what} can't be filled from JSON: {wrong}. Hint what JSON has, a dataclass, "
            "pydantic model, TypedDict, msgspec.Struct, enum, date or UUID, or Any"
        )


def mentions(hint: Any, wanted: type) -> bool:
    """Return whether a hint is that class, or has it in it, as `Optional[…]`."""
    return hint is wanted or any(mentions(part, wanted) for part in get_args(hint))


def _unfillable(hint: Any) -> str | None:
    try:
        if _foreign.adapter(hint) is not None:
            return None
        within = [found[0] for part in _foreign.parts(hint) if (found := _foreign.stand_in(part)) is not None]
        return next((wrong for each in (hint, *within) if (wrong := _in(type_info(each), set())) is not None), None)
    except (TypeError, ValueError) as error:
        return str(error)
    except Exception as error:  # noqa: BLE001  # a hint within a class that can't be resolved
        return f"{type(error).__name__}: {error}"


def _in(info: Any, seen: set[int]) -> str | None:
    """Return what is wrong with a type, or with what it is made of."""
    if id(info) in seen:
        return None
    seen.add(id(info))
    custom = _custom(info)
    if custom is not None and _foreign.stand_in(custom) is None:
        return f"nothing in JSON is a {custom.__qualname__}"
    if isinstance(info, msgspec.inspect.DictType) and isinstance(info.key_type, _NO_KEYS):
        return f"no key in JSON is a {type(info.key_type).__name__.removesuffix('Type')}"
    if isinstance(info, msgspec.inspect.DictType) and (key := _custom(info.key_type)) is not None:
        return f"no key in JSON is a {key.__qualname__}"
    if isinstance(info, tuple):
        parts: list[Any] = list(info)
    elif isinstance(info, Type | msgspec.inspect.Field):
        parts = [getattr(info, name) for name in info.__struct_fields__]
    else:
        return None
    return next((wrong for part in parts if (wrong := _in(part, seen)) is not None), None)


def _custom(info: Any) -> type | None:
    """Return the class that msgspec doesn't know and no value of JSON is of, if it is one."""
    if not isinstance(info, CustomType) or any(issubclass(kind, info.cls) for kind in _OF_JSON):
        return None
    return info.cls


def _unresolved(function: Callable[..., Any]) -> tuple[str, Any]:
    """Return the first parameter whose hint can't be resolved, with the hint."""
    inner = inspect.unwrap(function)
    hints = getattr(inner, "__annotations__", {})
    for name, hint in hints.items():
        try:
            get_type_hints(SimpleNamespace(__annotations__={name: hint}), globalns=getattr(inner, "__globals__", {}))
        except Exception:  # noqa: BLE001  # as above
            return name, hint
    return "its hints", hints


def _called(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", repr(function)))
