"""Names of 0.2, which warn of the new ones. Delete this module, and the lines that name it, with 0.4."""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar, cast

T = TypeVar("T", bound=Mapping[str, Any])

_RENAMED: Final = {
    "Conflict": "errors.ConflictError",
    "Duplicate": "errors.DuplicateError",
    "InvalidRequest": "errors.InvalidRequestError",
    "Missing": "errors.MissingDependencyError",
    "NewJob": "jobs.JobRequest",
    "NotFound": "errors.NotFoundError",
    "NotYet": "errors.WaitTimeoutError",
    "PermissionDenied": "errors.PermissionDeniedError",
    "QueueClosed": "errors.QueueClosedError",
    "QueueFull": "errors.QueueFullError",
    "RateLimited": "errors.RateLimitedError",
    "Refused": "errors.RefusedError",
    "ResultTimeout": "errors.WaitTimeoutError",
    "ServerFailed": "errors.ServerError",
    "TooLarge": "errors.TooLargeError",
    "Unauthorized": "errors.UnauthorizedError",
    "Unavailable": "errors.UnavailableError",
    "Unsupported": "errors.UnsupportedError",
    "answers": "models",
}
_MOVED: Final = {
    "definitions": ("JobDefinition",),
    "errors": ("JobCancelled", "JobDropped", "ResultGone", "WorkflowCancelled", "WorkflowFailed"),
    "client": ("JobHandle",),
    "jobs": ("JobError",),
    "operations.dead_letters": ("DeadLetterFilter",),
    "operations.jobs": ("JobFilter",),
    "operations.queues": ("Prevention", "QueueOptions"),
    "operations.workflows": ("WorkflowHandle",),
    "options": ("Options", "Rate"),
    "sync": ("SyncClient", "SyncJobHandle", "SyncWorkflowHandle"),
    "tls": ("Tls",),
    "worker": ("DeadLetter", "Discard", "RetryLater", "SoftTimeout"),
    "workflows": ("Batch", "Chain", "Dag", "Flow", "Group"),
}
PLACES: Final = _RENAMED | {name: f"{module}.{name}" for module, names in _MOVED.items() for name in names}


def moved(name: str) -> object:
    """Return what a name of the package's root named in 0.2. Raises AttributeError for another name."""
    if name not in PLACES:
        raise AttributeError(f"module 'ojs_nats' has no attribute {name!r}")
    place = PLACES[name]
    _warn(f"ojs_nats.{name} is ojs_nats.{place}", depth=3)  # what imports or names it
    module, _, attribute = place.rpartition(".")
    if not module:
        return importlib.import_module(f"ojs_nats.{place}")
    return getattr(importlib.import_module(f"ojs_nats.{module}"), attribute)


def methods(kind: type[Any], **renamed: str) -> None:
    """Give a class its old methods. Each is named with its new one, or with the call to write in its place: `a(b=)`."""
    for old, new in renamed.items():
        setattr(kind, old, _method(kind, old, new))


def _method(kind: type[Any], old: str, new: str) -> Callable[..., Any]:
    path, _, option = new.removesuffix("=)").partition("(")

    def renamed(self: Any, *args: Any, **kwargs: Any) -> Any:
        _warn(f"{kind.__name__}.{old} is {kind.__name__}.{new}")
        found = self
        for name in path.split("."):
            found = getattr(found, name)
        if not option:
            return found(*args, **kwargs)
        return found(**{option: args[0] if args else getattr(importlib.import_module("ojs_nats.options"), option.title())()})

    return renamed


def arguments(kind: type[Any], **renamed: str) -> None:
    """Have a class take its old arguments by name. One without a new name does nothing."""
    made = kind.__init__

    @functools.wraps(made)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807  # it takes its place
        for old in renamed.keys() & kwargs.keys():
            value, new = kwargs.pop(old), renamed[old]
            if not new:
                _warn(f"{kind.__name__}({old}=) does nothing")
                continue
            _warn(f"{kind.__name__}({old}=) is {kind.__name__}({new}=)")
            kwargs[new] = value
        made(self, *args, **kwargs)

    kind.__init__ = __init__


def options(given: T) -> T:
    """Return options by their new names."""
    if "at" not in given:
        return given
    _warn("the option at= is scheduled_at=", depth=4)
    found = {**given}
    found["scheduled_at"] = found.pop("at")
    return cast("T", found)


def _warn(change: str, *, depth: int = 2) -> None:
    warnings.warn(f"{change} now (CHANGELOG, 0.2 to 0.3)", DeprecationWarning, stacklevel=depth + 1)
