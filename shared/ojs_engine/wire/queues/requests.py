"""What clients ask of queues: settings, removal, purges (ojs-queue-config §6, §9; ojs-backpressure §6.2; ojs-admin-api §6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, get_args

from msgspec import Raw, Struct

from ojs_api import words
from ojs_api.limits import MAX_CONCURRENCY
from ojs_api.queues import DeleteQueue, PurgeQueue, PurgeStates
from ojs_api.schemas import MODES
from ojs_engine.base.errors import OjsError, invalid
from ojs_engine.base.extensions import SentExtensions, sent_extensions
from ojs_engine.base.fields import (
    before_ms,
    below,
    check_known,
    check_once,
    choice,
    duration_ms,
    flag,
    integer,
    is_extension,
    mapping,
    members_of,
    object_of,
    queue_name,
    shown,
    text_list,
    value_of,
)
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.domain.job import Retry, State
from ojs_engine.domain.queues.config import Patch, Rate
from ojs_engine.domain.rate_limits.policy import read_policy
from ojs_engine.wire.jobs.retry import check_retry
from ojs_engine.wire.queues.starvation import parse_rotation
from ojs_engine.wire.requests import request_of

_OVERFLOW: Final = get_args(words.Overflow)
_MOST: Final = 2**53 - 1
_MAX_PATTERNS: Final = 100
_QUEUE_LIMIT: Final = ("concurrency", "rate", "period", "max_per_second", "throttle", "key", "on_limit")
_PARTS: Final = ("backpressure", "retention", "dead_letter", "dead_letter.retention")
"""Inner objects of settings of which each member is set by itself."""
_INNER: Final = ("rate_limit", "rate_limit.rate", "default_retry", "starvation_prevention", *_PARTS)
"""Inner objects of settings, in which members of extensions are kept, too."""
_RATE_WITHIN: Final = "rate_limit.rate."
_NULL: Final = Raw(b"null")
_PURGEABLE: Final = tuple(state for state in State if state is not State.ACTIVE)


class Deletion(Struct, frozen=True):
    """What becomes of a deleted queue's jobs."""

    strategy: words.RemovalStrategy = "reject"
    target_queue: str | None = None


class Purge(Struct, frozen=True):
    """Which jobs of a queue are removed; `before` is Unix ms."""

    states: tuple[State, ...]
    before: int | None = None


def parse_config(body: bytes, limits: PayloadLimits) -> Patch:
    """PUT /queues/{name}/config: the members that are sent are set, null takes one back, others stay as they are.

    Raises invalid_request naming the member, `unsupported` for what this server does not do.
    """
    return _config(object_of(check_once(body)), "", limits)


def parse_queue_limit(body: bytes, limits: PayloadLimits) -> Patch:
    """PUT /admin/queues/{name}/rate-limit: the members of `Policy` that a queue can have; what is left out is taken back."""
    sent = object_of(check_once(body))
    members = {name: value_of(raw, name, limits) for name, raw in sent.items()}
    if (field := next((name for name in ("throttle", "key", "on_limit") if members.get(name) is not None), None)) is not None:
        raise invalid(field, f"{field} belongs to jobs; a queue has concurrency and rate")
    check_known(members, _QUEUE_LIMIT)
    policy = read_policy(members, "")
    if policy.concurrency == 0:
        message = "concurrency must be at least 1; pause the queue to let nothing start, leave it out to lift the limit"
        raise invalid("concurrency", message)
    own = {name: raw for name, raw in sent.items() if is_extension(name)}
    extensions = _extensions(own | {"rate_limit": sent.get("rate", _NULL)}, limits)
    return {"concurrency": policy.concurrency, "rate_limit": policy.rate} | extensions


def parse_create(body: bytes, limits: PayloadLimits) -> tuple[str, Patch]:
    """POST /queues `{name, config}`; the members of `config` may stand beside `name` (ojs CLI)."""
    members = object_of(check_once(body))
    name = queue_name(value_of(members.pop("name", _NULL), "name", limits), "name", limits)
    sent = members.pop("config", _NULL)
    config = value_of(sent, "config", limits)
    if config is not None and type(config) is not dict:
        raise invalid("config", f"config must be an object, not {shown(config)}")
    within = {} if config is None else members_of(sent, "config")
    patch = _config(members, "", limits) | _config(within, "config.", limits)
    return name, patch | _extensions(members | within, limits)


def _config(members: Mapping[str, Raw], prefix: str, limits: PayloadLimits) -> dict[str, Any]:
    patch: dict[str, Any] = {**_extensions(members, limits)}
    for name, raw in members.items():
        path = prefix + name[:64]
        value = value_of(raw, path, limits)
        reader = _READERS.get(name)
        if is_extension(name):
            continue
        if reader is None:
            raise invalid(path, f"{path} is not a setting of a queue; settings are {', '.join(_READERS)}")
        patch |= reader(value, path, limits)
    return patch


def _extensions(members: Mapping[str, Raw], limits: PayloadLimits) -> dict[str, SentExtensions]:
    """Return those of settings; a rate within `rate_limit` has its own where answers have the rate."""
    sent = sent_extensions(members, limits, changed=_INNER)
    found = {path.replace(_RATE_WITHIN, "rate_limit.", 1): raw for path, raw in sent.members.items()}
    taken_back = tuple(path for path in sent.replaced if path in _PARTS)
    return {"extensions": SentExtensions(found, taken_back)} if found or taken_back else {}


_Reader = Callable[[Any, str, PayloadLimits], dict[str, Any]]


def _member(attribute: str, read: Callable[[Any, str, PayloadLimits], Any]) -> _Reader:
    def reader(value: Any, path: str, limits: PayloadLimits) -> dict[str, Any]:
        return {attribute: None if value is None else read(value, path, limits)}

    return reader


def _unsupported(neutral: tuple[Any, ...], instead: str) -> _Reader:
    def reader(value: Any, path: str, _limits: PayloadLimits) -> dict[str, Any]:
        if value is not None and value not in neutral:
            raise OjsError("unsupported", f"{path} is not supported by this server: {instead}", details={"field": path})
        return {}

    return reader


def _count(value: Any, path: str, _limits: PayloadLimits) -> int:
    return integer(value, path, 0, _MOST)


def _slots(value: Any, path: str, _limits: PayloadLimits) -> int:
    return integer(value, path, 0, MAX_CONCURRENCY)


def _overflow(value: Any, path: str, _limits: PayloadLimits) -> str:
    if value == "block":
        raise OjsError("unsupported", f"{path} 'block' is not supported: push again after Retry-After", details={"field": path})
    if value not in _OVERFLOW:
        raise invalid(path, f"{path} must be one of {', '.join(_OVERFLOW)}, not {shown(value)}")
    return str(value)


def _threshold(value: Any, path: str, _limits: PayloadLimits) -> float:
    if type(value) not in (int, float) or not 0 < value <= 1:
        raise invalid(path, f"{path} must be a number above 0 and at most 1, not {shown(value)}")
    return float(value)


def _backpressure(value: Any, path: str, limits: PayloadLimits) -> dict[str, Any]:
    if value is None:
        return {"max_size": None, "overflow_policy": None, "warning_threshold": None}
    return _members(value, path, limits, _BACKPRESSURE)


def _members(value: Any, path: str, limits: PayloadLimits, readers: Mapping[str, _Reader]) -> dict[str, Any]:
    patch: dict[str, Any] = {}
    for name, item in mapping(value, path).items():
        reader = readers.get(name)
        if is_extension(name):
            continue
        if reader is None:
            field = below(path, name)
            raise invalid(field, f"{field} is not a setting; settings are {', '.join(readers)}")
        patch |= reader(item, f"{path}.{name}", limits)
    return patch


def _dead_letter(value: Any, path: str, limits: PayloadLimits) -> dict[str, Any]:
    """The form of ojs-dead-letter §5.1: `{"retention": {"max_age", "max_count"}}`."""
    if value is None:
        return {"dead_letter_s": None, "dead_letter_max": None}
    return _members(value, path, limits, {"retention": _dead_letter_retention})


def _dead_letter_retention(value: Any, path: str, limits: PayloadLimits) -> dict[str, Any]:
    return _dead_letter(None, path, limits) if value is None else _members(value, path, limits, _DEAD_LETTER)


def _age(value: Any, path: str, limits: PayloadLimits) -> int:
    return duration_ms(value, path, 1_000, limits) // 1_000


def _rate(value: Any, path: str, limits: PayloadLimits) -> Rate:
    members = mapping(value, path)
    if type(members.get("rate")) is dict:  # the form of ojs-rate-limiting §7.2
        members, path = members["rate"], f"{path}.rate"
    if "max_per_second" in members:
        return Rate(integer(members["max_per_second"], f"{path}.max_per_second", 1, _MOST), 1_000)
    limit = integer(members.get("limit"), f"{path}.limit", 1, _MOST)
    return Rate(limit, duration_ms(members.get("period", "PT1S"), f"{path}.period", 1_000, limits))


def _seconds(value: Any, path: str, limits: PayloadLimits) -> int:
    return duration_ms(value, path, 1_000, limits)


def _retention(value: Any, path: str, limits: PayloadLimits) -> dict[str, Any]:
    """Each member by itself: what isn't sent stays. A text is the CLI's one time for every end."""
    if value is None or type(value) is str:
        value = dict.fromkeys(_RETENTION, value)
    members = {name: age for name, age in mapping(value, path).items() if not is_extension(name)}
    for name in members:
        if name not in _RETENTION:
            field = below(path, name)
            raise invalid(field, f"{field} is not a way to end; {path} has {', '.join(_RETENTION)}")
    return {_RETENTION[name]: None if age is None else _age(age, f"{path}.{name}", limits) for name, age in members.items()}


def _retry(value: Any, path: str, limits: PayloadLimits) -> Retry:
    return check_retry(value, path, limits)


def _types(value: Any, path: str, limits: PayloadLimits) -> tuple[str, ...]:
    types = text_list(value, path, _MAX_PATTERNS, limits)
    for index, one in enumerate(types):
        if "*" in one[:-1]:
            raise invalid(f"{path}[{index}]", f"{path}[{index}] may have its * at the end only, as in mail.*, not {shown(one)}")
    return types


def _flag(value: Any, path: str, _limits: PayloadLimits) -> bool:
    return flag(value, path)


_RETENTION: Final = {
    "completed": "completed_s",
    "discarded": "discarded_s",
    "cancelled": "cancelled_s",
    "dead_letter": "dead_letter_s",
}
_BACKPRESSURE: Final[dict[str, _Reader]] = {
    "max_depth": _member("max_size", _count),
    "strategy": _member("overflow_policy", _overflow),
    "warning_threshold": _member("warning_threshold", _threshold),
    "max_size_bytes": _unsupported((0,), "bound the number of jobs by max_depth"),
}
_DEAD_LETTER: Final[dict[str, _Reader]] = {
    "max_age": _member("dead_letter_s", _age),
    "max_count": _member("dead_letter_max", _count),
}
_READERS: Final[dict[str, _Reader]] = {
    "max_size": _member("max_size", _count),
    "max_depth": _member("max_size", _count),
    "overflow_policy": _member("overflow_policy", _overflow),
    "warning_threshold": _member("warning_threshold", _threshold),
    "backpressure": _backpressure,
    "concurrency": _member("concurrency", _slots),
    "rate_limit": _member("rate_limit", _rate),
    "visibility_timeout": _member("visibility_timeout_ms", _seconds),
    "default_timeout": _member("default_timeout_ms", _seconds),
    "default_retry": _member("default_retry", _retry),
    "retention": _retention,
    "dead_letter": _dead_letter,
    "dead_letter_max_size": _member("dead_letter_max", _count),
    "dead_letter_ttl": _member("dead_letter_s", _age),
    "allowed_job_types": _member("allowed_job_types", _types),
    "strict_pause": _member("strict_pause", _flag),
    "schema_validation": _member("schema_validation", lambda value, path, _limits: choice(value, path, MODES)),
    "starvation_prevention": _member("rotation_ms", parse_rotation),
    "max_size_bytes": _unsupported((0,), "bound the number of jobs by max_size"),
    "producers": _unsupported((["*"],), "producers aren't told apart"),
    "dead_letter_queue": _unsupported((), "dead letters are listed under /dead-letter; see retention.dead_letter"),
}


def parse_deletion(body: bytes, query: Mapping[str, str], queue: str, limits: PayloadLimits) -> Deletion:
    """DELETE /queues/{name}: a strategy in the body, or in the query for clients that send no body with it."""
    asked = request_of(body, DeleteQueue)
    for name in ("strategy", "target_queue"):
        sent = getattr(asked, name)
        if sent is not None and query.get(name, sent) != sent:
            raise invalid(name, f"{name} is in the query and in the body, and differs: leave one out")
    strategy = asked.strategy or query.get("strategy") or "reject"
    target = asked.target_queue or query.get("target_queue")
    match strategy:
        case "reject" | "discard":
            return Deletion(strategy)
        case "move":
            name = queue_name(target, "target_queue", limits)
            if name == queue:
                raise invalid("target_queue", "target_queue must be another queue than the one that is deleted")
            return Deletion("move", name)
        case _:
            raise invalid("strategy", f"strategy must be reject, discard or move, not {shown(strategy)}")


def parse_purge(body: bytes, now: int, limits: PayloadLimits, *, confirmed: bool) -> Purge:
    """DELETE /admin/queues/{name}/jobs `{states, older_than?, confirm: true}`; without `states`, all that only wait.

    `confirmed` is for POST /queues/{name}/purge, which says it by its name.
    """
    asked = request_of(body, PurgeQueue if confirmed else PurgeStates)
    if not (confirmed if asked.confirm is None else asked.confirm):
        raise invalid("confirm", "this removes every job that matches; send confirm: true to do it")
    if asked.states is None and not confirmed:
        raise invalid("states", f"states is required: a list of {', '.join(_PURGEABLE)}")
    states = []
    for index, state in enumerate(asked.states or (State.AVAILABLE, State.SCHEDULED, State.RETRYABLE, State.PENDING)):
        if state not in _PURGEABLE:
            message = f"states[{index}] must be one of {', '.join(_PURGEABLE)}, not {shown(state)}"
            raise invalid(f"states[{index}]", message)
        states.append(State(state))
    before = None if asked.older_than is None else before_ms(asked.older_than, "older_than", now, limits)
    return Purge(tuple(dict.fromkeys(states)), before)
