"""The contract's operations, and every request that a member makes wrong."""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import ojs_api
from ojs_api.operations import Operation, Subject
from ojs_engine.api.schema import sent_as

SUBJECTS: Final = [
    value
    for found in pkgutil.iter_modules(ojs_api.__path__)
    for value in vars(importlib.import_module(f"ojs_api.{found.name}")).values()
    if isinstance(value, Subject)
]
_JOB: Final = "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f"
BODIES: Final[dict[str, dict[str, Any]]] = {
    "reportJobProgress": {"progress": 0.5, "data": {}},
    "putJobCheckpoint": {"state": {}, "metadata": {}},
    "registerSchema": {"type": "a.b", "version": 1, "schema": {}, "validation": {}},
    "adminPutSchema": {"schema": {}, "validation": {}},
    "directWorker": {"directive": "quiet"},
    "directAllWorkers": {"directive": "quiet"},
    "createKey": {"name": "k", "role": "producer", "limits": {}},
    "rotateKey": {},
    "limitKey": {},
    "registerCronJob": {"name": "daily", "cron": "@daily", "type": "a.b", "job_template": {"type": "a.b"}},
    "updateCronJob": {"cron": "@daily"},
    "previewCron": {"cron": "@daily"},
    "setMaintenance": {"enabled": True},
    "overrideRateLimit": {
        "concurrency": 1,
        "rate": {"limit": 1, "period": "PT1S"},
        "throttle": {"limit": 1, "period": "PT1S"},
    },
    "createWebhookSubscription": {"url": "https://a.example/", "events": ["*"], "filter": {}, "metadata": {}},
    "updateWebhookSubscription": {"url": "https://a.example/", "events": ["*"], "filter": {}, "metadata": {}},
    "cancelJob": {"reason": "by hand"},
    "adminCancelJob": {"reason": "by hand"},
    "updateJobPriority": {"priority": 5},
    "getJobResults": {"ids": []},
    "deleteQueue": {"strategy": "move", "target_queue": "b"},
    "purgeQueue": {"states": ["available"]},
    "adminPurgeQueue": {"states": ["available"], "confirm": True},
    "putPool": {"queues": ["a"], "starvation_prevention": {}},
    **{f"bulk{change}Jobs": {"filter": {"queue": "q"}} for change in ("Cancel", "Retry", "Delete")},
    "bulkReprioritiseJobs": {"filter": {"queue": "q"}, "priority": 5},
    **{f"adminBulk{change}": {"filter": {"queue": "q"}, "confirm": True} for change in ("Cancel", "Retry", "Delete")},
    "adminBulkReprioritise": {"filter": {"queue": "q"}, "confirm": True, "priority": 5},
    "retryDeadLetterJob": {"override": {"queue": "q"}},
    "bulkRetryDeadLetter": {"filter": {"queue": "q"}, "confirm": True},
    "purgeDeadLetter": {"filter": {"queue": "q"}},
    "clearDeadLetter": {"filter": {"queue": "q"}, "confirm": True},
    "fetchJobs": {"queues": ["default"]},
    "ackJob": {"job_id": _JOB},
    "ackJobs": {"jobs": [{"job_id": _JOB}]},
    "nackJob": {"job_id": _JOB, "error": {"message": "m"}},
    "workerHeartbeat": {"worker_id": "w", "active_jobs": 0, "complete": {"since": "5-1000", "until": "7-2000"}},
    "registerWorker": {"worker_id": "w"},
    "deregisterWorker": {"worker_id": "w"},
}
"""A sound body for each operation that has one, with an object for each member that is one."""
REPORTS: Final = {"nackJob", "workerHeartbeat"}
"""Operations whose requests aren't refused for a side member: it is left out, with a warning."""
EACH: Final = {"acks", "jobs"}
"""Lists whose items are answered one by one."""
BY_HAND: Final = {"createWorkflow", "createJobBatch", "bulkCreateJobs"}
"""Operations whose bodies are read by hand: a refusal names a place of the definition, or a job."""
PLACES: Final = {
    "job_id": _JOB,
    "schema": "a.b",
    "version": "1",
    "key_id": "none",
    "worker_id": "w",
    "cron": "daily",
    "workflow_id": "none",
    "subscription": "sub_none",
    "key": "k",
    "pool": "p",
    "queue": "a",
}
"""What stands for the names in paths."""
OTHER_NAMES: Final = {
    "args_schema": "schema",
    "job_type": "type",
    "expression": "cron",
    "schedule": "cron",
    "active_job_ids": "active_jobs",
    "job_ids": "filter",
}
"""Members that count only where the other one is absent."""
_HUGE: Final = "1e400"
_SAMPLES: Final[dict[str, Any]] = {"string": "x", "boolean": True, "object": {"a": 1}}


class Wrong(NamedTuple):
    """A request that is refused, and the member that the refusal names."""

    operation: Operation
    member: str
    body: bytes

    @property
    def path(self) -> str:
        """Where it goes to."""
        return self.operation.place.format(**PLACES)


def operations() -> Iterator[Operation]:
    """Yield all operations of the contract."""
    for subject in SUBJECTS:
        yield from subject.operations


def refusing() -> Iterator[Operation]:
    """Yield the operations with a body of which each wrong member is refused."""
    yield from (operation for operation in operations() if operation.body and operation.name not in REPORTS)


def wrong_requests(operation: Operation) -> list[Wrong]:
    """Return a request for each way in which each member of a body can be wrong."""
    if operation.body is None or operation.name in BY_HAND:
        return []
    spoilt = _spoilt(sent_as(operation.body), BODIES[operation.name])
    return [Wrong(operation, member, _encoded(body)) for member, body in spoilt]


def _encoded(body: Any) -> bytes:
    return json.dumps(body).replace(f'"{_HUGE}"', _HUGE).encode()


def _spoilt(schema: dict[str, Any], sound: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a member's path, and an object in which that member is wrong."""
    if not schema.get("additionalProperties"):
        yield "mispelt", sound | {"mispelt": 1}
    for name in schema.get("required", ()):
        yield name, {other: value for other, value in sound.items() if other != name}
        if not _takes_anything(schema["properties"][name]):
            yield name, sound | {name: None}
    for name, one in schema["properties"].items():
        if not one.keys() & {"type", "anyOf", "enum"}:
            continue  # any JSON
        beside = {other: value for other, value in sound.items() if other != OTHER_NAMES.get(name)}
        for value in _wrong(one):
            if name not in EACH or not isinstance(value, list):
                yield name, beside | {name: value}
        if "properties" in one:
            yield from ((f"{name}.{path}", sound | {name: inner}) for path, inner in _spoilt(one, sound[name]))


def _takes_anything(schema: dict[str, Any]) -> bool:
    """Tell whether any JSON is allowed, null included."""
    return not _bounds(schema)


def _bounds(schema: dict[str, Any]) -> dict[str, Any]:
    """Return what a schema says beside its description."""
    return {word: value for word, value in schema.items() if word != "description"}


def _wrong(schema: dict[str, Any]) -> Iterator[Any]:
    """Yield values that the schema doesn't allow."""
    if _takes_anything(schema):
        yield _HUGE
        return
    kinds = schema.get("anyOf", [schema])
    taken = {kind.get("type", "string") for kind in kinds}
    if all(kind.get("items") != {} for kind in kinds):
        yield [[5]]
    yield _HUGE
    yield from [] if _bounds(schema) == {"type": "number"} else [10**400]
    yield from (value for kind, value in _SAMPLES.items() if kind not in taken)
    for kind in kinds:
        match kind:
            case {"enum": [str(), *_]}:
                yield "sideways"
                yield from [] if taken & {"integer", "number"} else [5]
            case {"type": "string"}:
                yield from ["x" * (kind["maxLength"] + 1)] if "maxLength" in kind else []
                yield from ["? ?"] if "pattern" in kind else []
            case {"type": "integer" | "number"}:
                yield from [1.5] if taken == {"integer"} else []
                yield from [kind["minimum"] - 1] if "minimum" in kind else []
                yield from [kind["maximum"] + 1] if "maximum" in kind else []
            case {"type": "array"}:
                yield from ([value] for value in _wrong(kind["items"])) if kind["items"] else []
                yield from [[f"x{number}" for number in range(kind["maxItems"] + 1)]] if "maxItems" in kind else []
                yield from [[]] if kind.get("minItems") else []
            case _:
                pass
