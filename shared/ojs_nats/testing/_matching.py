"""The jobs that a test means, and the message about the others."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from ojs_nats._durations import Duration, milliseconds
from ojs_nats._plain import plain
from ojs_nats.definitions import JobDefinition
from ojs_nats.jobs import Job

What = JobDefinition[Any, Any] | str
"""A definition, or a job type."""

_MOST: Final = 20
"""So many jobs are shown when none fits."""


class Wanted(msgspec.Struct, frozen=True):
    """All that a job has to be. `named` are arguments by the names of the handler's parameters; None fits any."""

    type: str
    parameters: Mapping[str, inspect.Parameter] | None
    positional: Sequence[Any]
    named: Mapping[str, Any]
    queue: str | None = None
    meta: Mapping[str, Any] | None = None
    tags: Sequence[str] | None = None
    priority: int | None = None
    delay: Duration | None = None
    at: datetime | None = None

    def __post_init__(self) -> None:
        if self.named and self.parameters is None:
            raise TypeError(f"{self.type} has no handler here, so its arguments have no names: give them in order")
        for name in self.named:
            if name not in (self.parameters or {}):
                known = ", ".join(self.parameters or {}) or "none"
                raise TypeError(f"the handler of {self.type} has no parameter {name!r}; its parameters are: {known}")

    def __str__(self) -> str:
        """Return it as a call of the handler."""
        given = [repr(value) for value in self.positional] + [f"{name}={value!r}" for name, value in self.named.items()]
        options = ("queue", "meta", "tags", "priority", "delay", "at")
        said = [f"{name} {getattr(self, name)!r}" for name in options if getattr(self, name) is not None]
        return ", ".join([f"{self.type}({', '.join(given)})" if given else self.type, *said])

    def misfit(self, job: Job) -> str | None:
        """Why this job isn't meant, in a few words; None if it is."""
        if job.type != self.type:
            return "another type"
        for index, value in enumerate(self.positional):
            if index >= len(job.args):
                return f"it has {len(job.args)} arguments"
            if not _same(value, job.args[index]):
                return f"argument {index + 1} is {job.args[index]!r}"
        for name, value in self.named.items():
            found = self._argument(job, name)
            if not _same(value, found):
                return f"{name} is {found!r}"
        return self._misfit_of_options(job)

    def _misfit_of_options(self, job: Job) -> str | None:
        for name in ("queue", "priority"):
            wanted, found = getattr(self, name), getattr(job, name)
            if wanted is not None and wanted != found:
                return f"{name} is {found!r}"
        if self.tags is not None and not set(self.tags) <= set(job.tags):
            return f"tags are {job.tags!r}"
        if self.meta is not None:
            for name, value in self.meta.items():
                if name not in job.meta or not _same(value, job.meta[name]):
                    return f"meta[{name!r}] is {job.meta.get(name)!r}"
        if self.at is not None and job.scheduled_at != self.at:
            return f"it is for {job.scheduled_at}"
        if self.delay is not None:
            assert job.created_at is not None
            waits = None if job.scheduled_at is None else (job.scheduled_at - job.created_at).total_seconds()
            if waits is None or round(waits * 1_000) != milliseconds(self.delay):
                return "it isn't delayed" if waits is None else f"its delay is {waits:g} s"
        return None

    def _argument(self, job: Job, name: str) -> Any:
        assert self.parameters is not None
        index = [*self.parameters].index(name)
        if index < len(job.args):
            return job.args[index]
        return _plain(self.parameters[name].default)


def wanted(
    definitions: Mapping[str, JobDefinition[Any, Any]],
    what: What,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    **options: Any,
) -> Wanted:
    """Raises TypeError for arguments that the handler hasn't got."""
    definition = definitions.get(what) if isinstance(what, str) else what
    parameters = None if definition is None else _parameters(definition)
    return Wanted(what if isinstance(what, str) else what.type, parameters, args, kwargs, **options)


def _shown(job: Job, names: Sequence[str]) -> str:
    """Return a job as a call, with its queue and state."""
    args = [f"{names[index]}={value!r}" if index < len(names) else repr(value) for index, value in enumerate(job.args)]
    due = f", for {job.scheduled_at:%Y-%m-%d %H:%M:%S}" if job.state == "scheduled" else ""
    error = f": {job.error.type}: {job.error.message}" if job.error is not None else ""
    return f"{job.type}({', '.join(args)}) on {job.queue}, {job.state}{due}{error}"


def listing(jobs: Sequence[Job], meant: Wanted, definitions: Mapping[str, JobDefinition[Any, Any]]) -> str:
    """The jobs that there are, one a line, those of the type that is meant first; with the reason if it isn't meant."""
    if not jobs:
        return "  (none)"
    ordered = sorted(jobs, key=lambda job: job.type != meant.type)
    lines: list[str] = []
    for job in ordered[:_MOST]:
        definition = definitions.get(job.type)
        parameters = {} if definition is None else _parameters(definition)
        why = meant.misfit(job)
        lines.append(f"  {_shown(job, [*parameters])}" + (f"  <- {why}" if why else ""))
    more = len(jobs) - _MOST
    return "\n".join(lines) + (f"\n  and {more} more" if more > 0 else "")


def _parameters(definition: JobDefinition[Any, Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters that are arguments of its jobs, in order."""
    declared = list(inspect.signature(definition.handler).parameters.values())
    own = declared[1:] if definition._inside.parameters.takes_context else declared
    return {each.name: each for each in own if each.name not in definition._inside.parameters.injected}


def _same(value: Any, found: Any) -> bool:
    return bool(value == found or _plain(value) == found)


def _plain(value: Any) -> Any:
    """Return a value as JSON has it, or as it is if JSON can't hold it: something that compares itself, as pytest.approx."""
    try:
        return plain(value, "it")
    except (TypeError, ValueError):
        return value
