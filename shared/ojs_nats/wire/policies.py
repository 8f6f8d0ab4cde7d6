"""`unique` and `rate_limit`: checked in shape here, kept as sent in `Job.unique` and `Job.rate_limit`, echoed, not enforced.

This is the one place to change when the server starts to enforce them.
"""

from __future__ import annotations

from typing import Any, Final

from ojs_nats.errors import invalid
from ojs_nats.job import State
from ojs_nats.wire.fields import duration_ms, shown, text_list
from ojs_nats.wire.limits import Limits

__all__ = ["check_rate_limit", "check_unique"]

_DIMENSIONS: Final = ("type", "queue", "args", "meta")
_ON_CONFLICT: Final = ("reject", "replace", "replace_except_schedule", "ignore")
_STATES: Final = tuple(state.value for state in State)
_MOST: Final = 50


def check_unique(value: dict[str, Any], path: str, limits: Limits) -> None:
    """A uniqueness policy in any client's dialect (ojs-unique-jobs; requirements §9, C10). Raises invalid_request."""
    keys = value.get("keys")
    if keys is not None:
        for index, key in enumerate(text_list(keys, f"{path}.keys", _MOST, limits)):
            _choice(key, f"{path}.keys[{index}]", _DIMENSIONS)
        if "meta" in keys and not value.get("meta_keys"):
            raise invalid(f"{path}.meta_keys", f"{path}.meta_keys must name members of meta when {path}.keys lists meta")
    for name in ("args_keys", "meta_keys", "key"):
        given = value.get(name)
        if given is not None and not (name == "key" and type(given) is str):
            text_list(given, f"{path}.{name}", _MOST, limits)
    for name, unit_ms in (("period", 1_000), ("period_ms", 1), ("within", 1_000)):
        if value.get(name) is not None:
            duration_ms(value[name], f"{path}.{name}", unit_ms, limits)
    if value.get("states") is not None:
        for index, state in enumerate(text_list(value["states"], f"{path}.states", _MOST, limits)):
            _choice(state, f"{path}.states[{index}]", _STATES)
    if value.get("on_conflict") is not None:
        _choice(value["on_conflict"], f"{path}.on_conflict", _ON_CONFLICT)


def check_rate_limit(value: dict[str, Any], path: str) -> None:
    """A rate limit: its numbers are above 0. Raises invalid_request."""
    for name, given in value.items():
        if type(given) in (int, float) and given <= 0:
            raise invalid(f"{path}.{name}", f"{path}.{name} must be more than 0, not {shown(given)}")


def _choice(value: Any, path: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise invalid(path, f"{path} must be one of {', '.join(choices)}, not {shown(value)}")
