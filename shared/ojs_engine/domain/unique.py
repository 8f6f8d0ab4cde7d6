"""Uniqueness policies as a job carries them: every client's dialect, the fingerprint, and how long they keep a record.

ojs-unique-jobs §2-§7. A job keeps its policy as sent (`Job.unique`) and the fingerprint that follows from it
(`Job.unique_key`).
"""

from __future__ import annotations

import hashlib
import unicodedata
from functools import lru_cache
from typing import Any, Final, get_args

import msgspec
import rfc8785
from msgspec import Raw, Struct
from msgspec.structs import replace

from ojs_api import words
from ojs_engine.base.errors import invalid, naming
from ojs_engine.base.fields import below, duration_ms, short_text, shown, text_list
from ojs_engine.base.payload_limits import DEFAULT_LIMITS, PayloadLimits
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.versions import version_of

OnConflict = words.OnConflict

_DIMENSIONS: Final = get_args(words.Identity)
_VERSION: Final = "version"
"""A dimension in `keys` alone: in `key` it may be a field of args."""
_ON_CONFLICT: Final[tuple[OnConflict, ...]] = get_args(OnConflict)
_DEFAULT_STATES: Final = frozenset({State.AVAILABLE, State.ACTIVE, State.SCHEDULED, State.RETRYABLE, State.PENDING})
_ALIASES: Final = {
    "argsKeys": "args_keys",
    "metaKeys": "meta_keys",
    "onConflict": "on_conflict",
    "periodMs": "period_ms",
}
"""Names of the JavaScript SDK, whose workflow steps send options as written."""
_LISTS: Final = ("keys", "args_keys", "meta_keys")
_MEMBERS: Final = frozenset({*_LISTS, "key", "period", "period_ms", "within", "states", "on_conflict"})
_SELECTING: Final = (*_LISTS, "key")
_TYPE_AND_ARGS: Final = {"dimensions": ("type", _VERSION, "args")}
_MOST: Final = 50


class UniquePolicy(Struct, frozen=True, kw_only=True):
    """What makes a job unique, and what happens to a duplicate."""

    dimensions: tuple[str, ...] = ("type", _VERSION)
    """`type` is part of every fingerprint, named here or not. `version` is (ojs-job-versioning §15.5), unless a list of
    dimensions leaves it out.
    """
    args_keys: tuple[str, ...] | None = None
    """None takes all of args."""
    lenient: bool = False
    """An `args_keys` entry that args doesn't have is left out; otherwise it is refused."""
    meta_keys: tuple[str, ...] = ()
    literal: str | None = None
    """A key that the client made itself, in place of dimensions."""
    period_ms: int | None = None
    states: frozenset[State] = _DEFAULT_STATES
    on_conflict: OnConflict = "reject"


# Reading


@naming("UNIQUE_KEY_INVALID")
def parse_policy(sent: dict[str, Any], path: str, limits: PayloadLimits) -> UniquePolicy:
    """A policy in any client's dialect.

    `keys` lists dimensions and wins. `key` is a list of dimensions (Python SDK), a list of fields of args (JavaScript and Go
    SDKs), or a text that is the key itself (CLI, which calls the period `within`). An empty list counts as none; if nothing
    else says what makes the job unique, an empty `key` or `keys` stands for type and all args (OJS JSON format §3.5), as no
    work should be lost that may be another. Raises invalid_request.
    """
    given = {_ALIASES.get(name, name): value for name, value in sent.items() if value is not None and value != []}
    for name in given:
        if name not in _MEMBERS and not name.startswith(("ext_", "x_")):
            known = ", ".join(sorted(_MEMBERS))
            message = f"{path} has a member {shown(name)} that no uniqueness policy has; known: {known}"
            raise invalid(below(path, name), message)
    lists: dict[str, tuple[str, ...]] = {
        name: text_list(given[name], f"{path}.{name}", _MOST, limits) for name in _LISTS if name in given
    }
    return UniquePolicy(
        **(_selection(given, lists, path, limits) if _selects(given) or not _lists_nothing(sent) else _TYPE_AND_ARGS),
        period_ms=_period_ms(given, path, limits),
        states=_states(given.get("states"), f"{path}.states", limits),
        on_conflict=_choice(given.get("on_conflict", "reject"), f"{path}.on_conflict", _ON_CONFLICT),
    )


def _selects(given: dict[str, Any]) -> bool:
    return any(name in given for name in _SELECTING)


def _lists_nothing(sent: dict[str, Any]) -> bool:
    return sent.get("key") == [] or sent.get("keys") == []


def _selection(given: dict[str, Any], lists: dict[str, tuple[str, ...]], path: str, limits: PayloadLimits) -> dict[str, Any]:
    args_keys, meta_keys = lists.get("args_keys"), lists.get("meta_keys", ())
    if "keys" in lists:
        for index, key in enumerate(lists["keys"]):
            _choice(key, f"{path}.keys[{index}]", (*_DIMENSIONS, _VERSION))
        if "meta" in lists["keys"] and not meta_keys:
            raise invalid(f"{path}.meta_keys", f"{path}.meta_keys must name members of meta when {path}.keys lists meta")
        return {"dimensions": lists["keys"], "args_keys": args_keys, "meta_keys": meta_keys}
    if isinstance(given.get("key"), str):
        return {"literal": short_text(given["key"], f"{path}.key", limits)}
    if "key" in given:
        fields = text_list(given["key"], f"{path}.key", _MOST, limits)
        if all(field in _DIMENSIONS for field in fields):
            return _selection({}, lists | {"keys": fields}, path, limits)
        return {"dimensions": ("type", _VERSION, "args"), "args_keys": fields, "lenient": True}
    dimensions = ("type", _VERSION, *(["args"] if args_keys is not None else []), *(["meta"] if meta_keys else []))
    return {"dimensions": dimensions, "args_keys": args_keys, "meta_keys": meta_keys}


def _period_ms(given: dict[str, Any], path: str, limits: PayloadLimits) -> int | None:
    found = [
        duration_ms(given[name], f"{path}.{name}", unit_ms, limits)
        for name, unit_ms in (("period", 1_000), ("period_ms", 1), ("within", 1_000))
        if name in given
    ]
    return found[0] if found else None


def _states(given: Any, path: str, limits: PayloadLimits) -> frozenset[State]:
    if given is None:
        return _DEFAULT_STATES
    names = tuple(state.value for state in State)
    listed = text_list(given, path, _MOST, limits)
    return frozenset(State(_choice(state, f"{path}[{index}]", names)) for index, state in enumerate(listed))


def _choice(value: Any, path: str, choices: tuple[Any, ...]) -> Any:
    if value not in choices:
        raise invalid(path, f"{path} must be one of {', '.join(choices)}, not {shown(value)}")
    return value


@lru_cache(maxsize=1_024)
def _stored_policy(body: bytes) -> UniquePolicy:
    return parse_policy(msgspec.json.decode(body), "unique", DEFAULT_LIMITS)


def policy_of(job: Job) -> UniquePolicy:
    """The policy that a job was accepted with; it has one."""
    return _stored_policy(bytes(job.unique))


# The fingerprint


def keyed(job: Job) -> Job:
    """The job with the fingerprint that follows from its policy, type, queue, args and meta; without, if it has no policy.

    To be called by whoever changes one of these of a job. Raises invalid_request if a member that the policy names isn't
    there, or can't be part of a fingerprint.
    """
    if not job.unique:
        return job if job.unique_key is None else replace(job, unique_key=None)
    return replace(job, unique_key=_fingerprint(job, policy_of(job)))


@naming("UNIQUE_KEY_INVALID")
def _fingerprint(job: Job, policy: UniquePolicy) -> str:
    """SHA-256 of the chosen dimensions as canonical JSON (RFC 8785) with strings in NFC, in lower-case hexadecimal."""
    chosen: dict[str, Any] = {"type": job.type}
    if policy.literal is not None:
        chosen["key"] = policy.literal
    if _VERSION in policy.dimensions and (version := version_of(job.version)) is not None:
        chosen[_VERSION] = version.token
    if "queue" in policy.dimensions:
        chosen["queue"] = job.queue
    if "args" in policy.dimensions:
        args = msgspec.json.decode(job.args)
        chosen["args"] = args if policy.args_keys is None else _args_members(args, policy.args_keys, lenient=policy.lenient)
    if "meta" in policy.dimensions:
        chosen["meta"] = _meta_members(job.meta, policy.meta_keys)
    try:
        canonical = rfc8785.dumps(_composed(chosen))
    except rfc8785.CanonicalizationError as problem:
        raise invalid(
            "unique",
            f"the members that make the job unique have no canonical JSON: {problem}",
            hint="Send integers beyond 2^53 as text.",
        ) from None
    return hashlib.sha256(canonical).hexdigest()


def _args_members(args: list[Any], keys: tuple[str, ...], *, lenient: bool) -> dict[str, Any]:
    """Members by name of the first of the arguments that has them: args is an array, mostly of one object."""
    objects = [item for item in args if isinstance(item, dict)]
    found: dict[str, Any] = {}
    for key in keys:
        holder = next((item for item in objects if key in item), None)
        if holder is not None:
            found[key] = holder[key]
        elif not lenient:
            raise invalid("unique.args_keys", f"unique.args_keys names {shown(key)}, which no object in args has")
    return found


def _meta_members(meta: Raw, keys: tuple[str, ...]) -> dict[str, Any]:
    """An absent member is left out: what is not there is not the same as anything that is."""
    members: dict[str, Any] = msgspec.json.decode(meta)
    return {key: members[key] for key in keys if key in members}


def _composed(value: Any) -> Any:
    """The value with every string, names included, in Unicode normalisation form C."""
    if isinstance(value, str):
        return value if value.isascii() else unicodedata.normalize("NFC", value)
    if isinstance(value, list):
        return [_composed(item) for item in value]
    if isinstance(value, dict):
        # Two names may become one: sorted, so that the same of the two wins in whatever order they were sent.
        return {_composed(name): _composed(item) for name, item in sorted(value.items())}
    return value


# Retention


def kept_s(job: Job) -> int:
    """Seconds for which a finished job's record has to stay because later ones may be its duplicates; 0 for no reason."""
    if job.unique_key is None:
        return 0
    policy = policy_of(job)
    if policy.period_ms is None or job.state not in policy.states:
        return 0
    return -(-policy.period_ms // 1_000)
