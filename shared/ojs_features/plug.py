"""The places where a feature is plugged into the server.

A feature is a folder of `ojs_features`. The server is composed of the features that `ojs_features/all.py` lists, and
runs without any of them. A place that a feature needs is a member of `Feature`, and never an import of the feature.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

from msgspec import Struct

from ojs_engine.api.guard import Guard, KeyEnd
from ojs_engine.api.job_extras import Inputs, JobExtras
from ojs_engine.api.route import Part
from ojs_engine.api.witness import Witnessing
from ojs_engine.base.service import Service
from ojs_engine.domain.transitions.result import Transition
from ojs_engine.jetstream.grants import FeatureGrants
from ojs_engine.jetstream.reading import RecordReader
from ojs_engine.operations.finding import Finding
from ojs_engine.operations.job_checks import FeatureCheck, JobCheck
from ojs_engine.store.backup import BackupCommands, FeatureBackup
from ojs_engine.store.gates import QueueOrder
from ojs_engine.store.locks import JobLocks
from ojs_engine.store.store import FeatureGates, Store
from ojs_engine.telemetry.metrics import Family
from ojs_engine.wire.system.extensions import Extension
from ojs_index.asking.client import Queries
from ojs_index.followed import Followed

T = TypeVar("T")


def only(given: Iterable[T | None]) -> T | None:
    """Return what one feature gives of a member that only one may have, None if none does. Raises TypeError for two."""
    found = [one for one in given if one is not None]
    if len(found) > 1:
        raise TypeError(f"only one feature may give this, and {len(found)} do: {found}")
    return found[0] if found else None


class Process(Struct, frozen=True, kw_only=True):
    """A process of the system that does the work of a feature alone."""

    role: str
    without: str
    """The consequence for users while no process of the role runs."""
    wanted: Callable[[Store], Awaitable[bool]]
    """Whether the system has work for it. Raises OjsError backend_unavailable."""


class Check(Struct, frozen=True, kw_only=True):
    """A check of the system, whose findings are in GET /admin/findings under its name."""

    name: str
    look: Callable[[Store, Queries], Awaitable[Iterable[Finding]]]
    """Raises OjsError where it can't be made."""


class Feature(Struct, frozen=True, kw_only=True):
    """A feature, by what it adds to the server. It adds nothing to a place that it doesn't name."""

    name: str
    parts: tuple[Part, ...] = ()
    """Operations of the API, over HTTP and NATS."""
    extensions: tuple[Extension, ...] = ()
    """Extensions of Open Job Spec that the server supports by it."""
    capabilities: tuple[str, ...] = ()
    """Names of the manifest's capabilities that are true because of it."""
    gates: FeatureGates | None = None
    """Its gates for jobs. Only one feature may have them."""
    ends: Mapping[str, Callable[[Store, Transition], None]] = MappingProxyType({})
    """By the word of a `Drop`: called in every process with a job that has ended for what it has stored beside it."""
    locks: Callable[[Store], JobLocks] | None = None
    """Makes its locks of jobs in a process. Only one feature may have them."""
    order: Callable[[Store], QueueOrder] | None = None
    """Makes its order of a fetch's queues. Only one feature may have one."""
    loops: tuple[Callable[[Store, JobCheck], Service], ...] = ()
    """Make the loops that schedulers run for it."""
    gateway_loops: tuple[Callable[[Store], Service], ...] = ()
    """Make the loops that each gateway runs for it."""
    jobs: tuple[JobExtras, ...] = ()
    """Its part in answers about jobs."""
    inputs: Inputs | None = None
    """What it hands to workers with a job."""
    job_checks: tuple[FeatureCheck, ...] = ()
    """Its checks of new jobs, before they are pushed."""
    records: tuple[RecordReader[Any], ...] = ()
    """The kinds of its records. An operator can remove one that can't be read, and a reset removes all."""
    lasting: tuple[RecordReader[Any], ...] = ()
    """Further kinds, whose records a reset leaves."""
    followed: tuple[Followed, ...] = ()
    """The kinds whose records projectors read, too."""
    removed: Mapping[str, Callable[[Store, str], Awaitable[None]]] = MappingProxyType({})
    """By the kind of record: follows the removal of one of a name that can't be read."""
    backup: FeatureBackup = FeatureBackup()
    """Its part in backups."""
    backup_commands: BackupCommands | None = None
    """Makes, restores and releases backups. Only one feature may."""
    grants: FeatureGrants = FeatureGrants()
    processes: tuple[Process, ...] = ()
    checks: tuple[Check, ...] = ()
    metrics: tuple[Family, ...] = ()
    """Its metrics. A gateway serves them, too, though another process counts."""
    witness: Witnessing | None = None
    """What it writes down of acts and refusals."""
    guard: Callable[[Store, Any], Guard] | None = None
    """Makes the guard of a gateway, of its settings (`ojs_runtime.settings.Settings`). Only one feature may have one."""
    on_nats: Mapping[str, Callable[[Store, Sequence[Feature]], Any]] = MappingProxyType({})
    """By the command: makes its work on NATS itself, without a server between."""
    key_ends: tuple[KeyEnd, ...] = ()
