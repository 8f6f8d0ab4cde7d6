"""POST /workflows: a definition in any dialect -> its graph and the drafts of its jobs.

Every refusal is `invalid_workflow` and names the place, except for sizes (413), which keep their own codes.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from msgspec import Raw
from msgspec.structs import replace

from ojs_engine.base.errors import OjsError
from ojs_engine.base.extensions import Extensions, sent_extensions
from ojs_engine.base.fields import absent, is_extension, object_of, short_text, value_of
from ojs_engine.base.ids import is_job_id, new_job_id
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.domain.job import Job
from ojs_engine.domain.unique import policy_of
from ojs_engine.wire.jobs.enqueue import read_envelope
from ojs_engine.wire.members import AnswerWarning, warnings_at
from ojs_features.workflows.definition import Definition
from ojs_features.workflows.graph import Composite, Graph, Shape
from ojs_features.workflows.outline import Item, Outline, invalid_workflow, is_workflow, object_at, outline
from ojs_features.workflows.record import job_id

CHUNK_JOBS: Final = 100
CHUNK_BYTES: Final = 256 * 1024


class _Pending(NamedTuple):
    """A workflow that has a number and waits for its children to get theirs."""

    node: int
    item: Item
    options: dict[str, Raw]
    depth: int


_OF_STEPS: Final = ("depends_on", "callback_type", "name")
"""Members that a step has besides the attributes of its job."""


def parse_workflow(
    body: bytes,
    now: int,
    limits: PayloadLimits,
    told: list[AnswerWarning] | None = None,
    *,
    default_id: str | None = None,
) -> Definition:
    """Read and check a whole definition; `now` in Unix milliseconds is what relative times count from.

    `default_id` is the id of a workflow that brings none.

    Raises OjsError: invalid_payload, invalid_workflow, envelope_too_large, metadata_too_large.
    """
    members = object_of(body)
    if "workflow" in members and not is_workflow(members):
        members = object_at(members["workflow"], "$.workflow")
    workflow_id = _id(members.pop("id", Raw()), default_id or new_job_id(now), limits)
    name = _name(members.get("name", Raw()), "$.name", limits)
    return _Reader(now, limits, [] if told is None else told).read(workflow_id, name, members)


class _Reader:
    """Gives out numbers level by level, so that the children of each workflow have consecutive ones."""

    def __init__(self, now: int, limits: PayloadLimits, told: list[AnswerWarning]) -> None:
        self._now = now
        self._limits = limits
        self._told = told
        self._composites: list[Composite] = []
        self._types: list[str] = []
        self._jobs: dict[int, Job] = {}
        self._places: dict[int, str] = {}
        self._waiting: list[_Pending] = []

    def read(self, workflow_id: str, name: str, members: dict[str, Raw]) -> Definition:
        self._types.append("")
        self._waiting.append(_Pending(0, Item("$", members, None), {}, 1))
        for pending in self._waiting:
            self._add(pending)
        jobs = {node: replace(draft, id=job_id(workflow_id, node, 0)) for node, draft in self._jobs.items()}
        marked = tuple(node for node, draft in sorted(jobs.items()) if any(map(is_extension, draft.extra)))
        shape = Shape(tuple(self._composites), _runs(self._types), _chunks(jobs), self._now, marked)
        return Definition(workflow_id, name, Graph(shape), jobs, self._places)

    def _add(self, pending: _Pending) -> None:
        path, members, _ = pending.item
        if pending.depth > self._limits.max_workflow_depth:
            raise invalid_workflow(path, f"workflows are nested deeper than {self._limits.max_workflow_depth} levels")
        found = outline(members, path, self._limits)
        options = pending.options | _options(members, path)
        first = len(self._types)
        self._composites.append(
            Composite(
                node=pending.node,
                kind=found.kind,
                first=first,
                size=len(found.items),
                roles=found.roles,
                name=_name(members.get("name", Raw()), f"{path}.name", self._limits),
                ids=found.ids,
                needs=found.needs,
                extensions=_extensions(members, path, self._limits),
            )
        )
        self._types[pending.node] = found.kind
        called = len(found.items) - len(found.roles)
        root = _root(found)
        inherited = options if root is None else _priority(found.items[root]) | options
        for position, item in enumerate(found.items):
            self._add_child(item, options if position == root else inherited, pending.depth, callback=position >= called)

    def _add_child(self, item: Item, options: dict[str, Raw], depth: int, *, callback: bool) -> None:
        node = len(self._types)
        if is_workflow(item.members):
            if callback:
                raise invalid_workflow(item.path, "a callback must be a job, not a workflow")
            self._types.append("")
            self._waiting.append(_Pending(node, item, options, depth + 1))
        else:
            draft = self._draft(item, options)
            self._jobs[node] = draft
            self._places[node] = item.path
            self._types.append(draft.type)
            if len(self._jobs) > self._limits.max_workflow_jobs:
                raise invalid_workflow(item.path, f"there are more than {self._limits.max_workflow_jobs} jobs in the workflow")

    def _draft(self, item: Item, defaults: dict[str, Raw]) -> Job:
        members = item.members
        if defaults:
            own = {} if absent(members.get("options", Raw())) else object_at(members["options"], f"{item.path}.options")
            members = members | {name: raw for name, raw in defaults.items() if name not in own and name not in members}
        size = sum(len(name) + len(raw) for name, raw in members.items())
        if size > self._limits.max_envelope_bytes:
            raise OjsError(
                "envelope_too_large",
                f"{item.path} is {size} bytes; the limit is {self._limits.max_envelope_bytes} bytes",
                details={"field": item.path, "actual_bytes": size, "max_bytes": self._limits.max_envelope_bytes},
            )
        try:
            told: list[AnswerWarning] = []
            draft = read_envelope(dict(members), self._now, self._limits, told=told, beside=_OF_STEPS)
            if told:
                self._told += warnings_at(item.path, told)
        except OjsError as error:
            if error.info.status == 413:
                raise
            field = error.details.get("field") or ""
            place = f"{item.path}.{field}" if field else item.path
            raise invalid_workflow(place, error.message) from None
        if draft.unique_key is not None and policy_of(draft).on_conflict == "ignore":
            message = "can't be ignore in a workflow, which would wait for a job that is never created; use reject or replace"
            raise invalid_workflow(f"{item.path}.options.unique.on_conflict", message)
        return draft


def _root(found: Outline) -> int | None:
    """The position of the one step that all others come after, if there is one."""
    if found.kind == "chain":
        return 0
    roots = [position for position, needs in enumerate(found.needs) if not needs]
    return roots[0] if len(roots) == 1 else None


def _priority(item: Item) -> dict[str, Raw]:
    """Return the priority of a step, which those after it have, too, unless they name another (ojs-priority §9.2)."""
    said = item.members | _options(item.members, item.path)
    return {} if absent(said.get("priority", Raw())) else {"priority": said["priority"]}


def _extensions(members: dict[str, Raw], path: str, limits: PayloadLimits) -> Extensions:
    """Return the members of extensions of a workflow; those among its callbacks are its own, too."""
    raw = members.get("callbacks", Raw())
    among = {} if absent(raw) else object_at(raw, f"{path}.callbacks")
    try:
        return sent_extensions(among | members, limits).over({}, limits)
    except OjsError as error:
        if error.info.status == 413:
            raise
        raise invalid_workflow(f"{path}.{error.details.get('field', '')}".removesuffix("."), error.message) from None


def _options(members: dict[str, Raw], path: str) -> dict[str, Raw]:
    """Return the options of a workflow, which its jobs have unless they name others."""
    raw = members.get("options", Raw())
    return {} if absent(raw) else object_at(raw, f"{path}.options")


def _name(raw: Raw, path: str, limits: PayloadLimits) -> str:
    if absent(raw):
        return ""
    value = value_of(raw, path, limits)
    if value == "":
        return ""
    try:
        return short_text(value, path, limits)
    except OjsError as error:
        raise invalid_workflow(path, error.message.removeprefix(f"{path} ")) from None


def _id(raw: Raw, default_id: str, limits: PayloadLimits) -> str:
    if absent(raw):
        return default_id
    value = value_of(raw, "$.id", limits)
    text = value.removeprefix("wf_") if type(value) is str else ""
    if not is_job_id(text):
        raise invalid_workflow("$.id", "must be a UUIDv7 in lower case, or left out to get one")
    return text


def workflow_id_of(text: str) -> str | None:
    """The id of a workflow as a client names it, in lower case; None for what can't be one."""
    lowered = text.lower().removeprefix("wf_")
    return lowered if is_job_id(lowered) else None


def _runs(types: list[str]) -> tuple[tuple[str, int], ...]:
    runs: list[tuple[str, int]] = []
    for name in types:
        if runs and runs[-1][0] == name:
            runs[-1] = (name, runs[-1][1] + 1)
        else:
            runs.append((name, 1))
    return tuple(runs)


def _chunks(jobs: dict[int, Job]) -> tuple[int, ...]:
    """Where portions of job templates begin: bounded in number and size, since one is read for each step of a chain."""
    starts: list[int] = []
    number = size = 0
    for node, job in sorted(jobs.items()):
        weight = len(job.args) + len(job.meta) + sum(map(len, job.extra.values())) + 500
        if not starts or number == CHUNK_JOBS or size + weight > CHUNK_BYTES:
            starts.append(node)
            number = size = 0
        number += 1
        size += weight
    return tuple(starts)
