"""What each role may say and hear on NATS: one row a role, of the names in `StoreConfig` (docs/adr/054).

NATS refuses whatever isn't in a row. Streams are made by the operator alone: who makes one could have nats-server publish
anything anywhere (`republish`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal, get_args

from msgspec import Struct

from ojs_engine.domain.threshold_alerts import ALERT_TYPES
from ojs_engine.jetstream.subjects import ANY, HAD_KEYS, REST, Kind, StoreConfig, Wildcard
from ojs_link.address import INBOX

Service = Literal["gateway", "scheduler", "reaper", "coordinator", "projector"]
SERVICES: Final[tuple[Service, ...]] = get_args(Service)
BACKGROUND: Final = "services"
"""The user of a process that runs all services but the gateway, where they don't have a user each."""
OPERATOR: Final = "operator"
"""The user of people."""
KEYS: Final = "keys"
"""The role of a command that changes keys: it works as the operator."""
BACKUP: Final = "backup"
"""The user of `ojs-nats backup`, who reads everything, and writes when the last backup was made."""
RESTORE: Final = "restore"
"""The user of `ojs-nats restore` and `release`, who makes the streams and writes everything."""
ANSWERING: Final = "gateway-api"
"""The gateway's second user, who takes requests over NATS and answers them."""

_DURABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "scheduler": ("scheduler",),
    "reaper": ("reaper",),
    "coordinator": ("coordinator",),
}
"""The consumers of records that the processes of a role share."""

_WRITES: Final[Mapping[str, tuple[Kind, ...]]] = {
    "gateway": (
        "job",
        "blob",
        "idempotency",
        "worker",
        "queue",
        "barrier",
    ),
    "scheduler": ("job",),
    "reaper": ("job",),
    "coordinator": ("job", "blob"),
    "projector": ("job", "relay", "barrier"),
}
CLIENT: Final = (
    "createJob",
    "createJobBatch",
    "bulkCreateJobs",
    "getJob",
    "getJobResult",
    "cancelJob",
    "createWorkflow",
    "getWorkflow",
    "cancelWorkflow",
)
"""The operations that whoever pushes jobs asks for. Features have more."""
WORKER: Final = (
    "fetchJobs",
    "ackJob",
    "ackJobs",
    "nackJob",
    "registerWorker",
    "workerHeartbeat",
    "deregisterWorker",
)
"""The operations of a worker. Features have more."""
_OF_NO_QUEUE: Final = frozenset({"createWorkflow", "getWorkflow", "cancelWorkflow"})
"""A workflow may have jobs in any queue, so a user that is held to some may not ask for these."""


class Grants(Struct, frozen=True):
    """The subjects that a user may publish to, less those in `not_publish`, and those that it may subscribe to."""

    publish: list[str]
    not_publish: list[str]
    subscribe: list[str]


class FeatureGrants(Struct, frozen=True, kw_only=True):
    """Permissions of services for a feature."""

    writes: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    """The kinds of records that each service writes."""
    publishes: Callable[[StoreConfig, str], list[str]] = lambda _config, _role: []
    """Returns the further subjects that a service publishes to."""
    durables: Mapping[str, Mapping[str, Callable[[StoreConfig], str]]] = MappingProxyType({})
    """By role: the consumers of records that its processes share for the feature, and the subjects that each takes."""
    roles: tuple[str, ...] = ()
    """Services of its own. They write no jobs."""
    hears: Callable[[StoreConfig, str], list[str]] = lambda _config, _role: []
    """Returns the further subjects that a service subscribes to."""
    clients: tuple[str, ...] = ()
    """Its operations that those who push jobs ask for."""
    workers: tuple[str, ...] = ()
    """Its operations that workers ask for."""


class Team(Struct, frozen=True):
    """A client and a worker that are held to some queues; all of them if there is none."""

    name: str = ""
    queues: tuple[str, ...] = ()

    @property
    def client(self) -> str:
        return f"{self.name}-client" if self.name else "client"

    @property
    def worker(self) -> str:
        return f"{self.name}-worker" if self.name else "worker"


def inbox_of(config: StoreConfig, role: str) -> str:
    """How the inboxes of a role begin."""
    return f"{INBOX}_{config.namespace}_{role}"


def all_grants(
    config: StoreConfig, features: Sequence[FeatureGrants], teams: Sequence[Team] = (Team(),), *, test_mode: bool = False
) -> dict[str, Grants]:
    """Return the rows of a system by the users' names. In `test_mode` services take part in resets."""
    roles = (*SERVICES, *(role for feature in features for role in feature.roles))
    found: dict[str, Grants] = {role: _service(config, features, role, test_mode=test_mode) for role in roles}
    found[BACKGROUND] = _background(config, [row for role, row in found.items() if role != "gateway"])
    asking = [OPERATOR, *(name for team in teams for name in (team.client, team.worker))]
    answers = [f"{inbox_of(config, name)}.>" for name in asking]
    found[ANSWERING] = _row(config, ANSWERING, ["$JS.API.INFO", *answers], [config.api(ANY, REST), "$SRV.>"])
    heard = [config.events, config.live_events]
    found[OPERATOR] = _row(config, OPERATOR, _operator(config), heard, [_taking_the_mark(config)])
    found[BACKUP] = _row(config, BACKUP, _backup(config), not_publish=_of_others(config, features, BACKUP))
    found[RESTORE] = _row(config, RESTORE, _restore(config))
    of_clients = [*CLIENT, *(operation for feature in features for operation in feature.clients)]
    of_workers = [*WORKER, *(operation for feature in features for operation in feature.workers)]
    for team in teams:
        found[team.client] = _row(config, team.client, _asks(config, of_clients, team.queues))
        found[team.worker] = _row(config, team.worker, _asks(config, of_workers, team.queues))
    return found


def _row(
    config: StoreConfig, user: str, publish: list[str], hears: Sequence[str] = (), not_publish: Sequence[str] = ()
) -> Grants:
    return Grants(publish, list(not_publish), [f"{inbox_of(config, user)}.>", *hears])


def _service(config: StoreConfig, features: Sequence[FeatureGrants], role: str, *, test_mode: bool) -> Grants:
    publish, hears = [*_reads(config), *_records(config, features, role), *_own(config, features, role)], _hears(config, role)
    publish += [subject for feature in features for subject in feature.publishes(config, role)]
    hears += [subject for feature in features for subject in feature.hears(config, role)]
    if test_mode:
        publish += [f"{config.reset_answers}*", *([config.reset, config.epoch] if role == "gateway" else [])]
        hears += [config.reset, *([f"{config.reset_answers}*"] if role == "gateway" else [])]
    return _row(config, role, publish, hears, _of_others(config, features, role))


def _background(config: StoreConfig, rows: Sequence[Grants]) -> Grants:
    """What the services beside a gateway may between them; each deny of one is what another one does."""
    publish = dict.fromkeys(subject for row in rows for subject in row.publish)
    hears = dict.fromkeys(subject for row in rows for subject in row.subscribe[1:])
    return _row(config, BACKGROUND, list(publish), list(hears), [_taking_the_mark(config)])


def purged_streams(config: StoreConfig, role: str) -> list[str]:
    """Return the streams that a process of a role may purge, of whatever subject: NATS doesn't look into the request."""
    streams = [config.records_stream]
    if role in SERVICES:
        streams.append(config.ready_stream)
    if role in {"gateway", "projector"}:
        streams.append(config.events_stream)
    return streams


def _streams(config: StoreConfig) -> list[str]:
    return [str(stream["name"]) for stream in config.streams()]


def _reads(config: StoreConfig) -> list[str]:
    """Return what every service asks JetStream."""
    records = config.records_stream
    return [
        "$JS.API.INFO",
        *(f"$JS.API.STREAM.INFO.{stream}" for stream in _streams(config)),
        f"$JS.API.STREAM.MSG.GET.{records}",
        f"$JS.API.DIRECT.GET.{records}",
        f"$JS.API.DIRECT.GET.{records}.{config.records}",
        f"$JS.API.CONSUMER.CREATE.{records}.*",  # copies of settings, whose names begin with what no wildcard can say
        f"$JS.API.CONSUMER.MSG.NEXT.{records}.*",
        f"$JS.API.CONSUMER.DELETE.{records}.*",
    ]


def _records(config: StoreConfig, features: Sequence[FeatureGrants], role: str) -> list[str]:
    """The records that a service writes, and what goes beside them."""
    kinds = (*_WRITES.get(role, ()), *(kind for feature in features for kind in feature.writes.get(role, ())))
    written = [config.record(kind, REST) for kind in kinds]
    written += [config.record("service", Wildcard(f"{role}.*")), config.ring]
    streams = purged_streams(config, role)
    written += [f"$JS.API.STREAM.PURGE.{stream}" for stream in streams]
    if role not in _WRITES:
        return written
    return [
        *written,
        *_hints(config, role),
        config.ready_of_queue(ANY),
        config.held_of(ANY),
        config.wake_of_queue(ANY),
        f"$JS.API.STREAM.MSG.DELETE.{config.ready_stream}",
        f"$JS.API.STREAM.MSG.GET.{config.ready_stream}",
        f"$JS.API.DIRECT.GET.{config.ready_stream}",
    ]


def _hints(config: StoreConfig, role: str) -> list[str]:
    """The timers and steps that whoever changes jobs writes."""
    every = [
        config.timer(ANY, ANY),
        config.note("workflow", ANY, ANY),
    ]
    probes = [config.record("probe", ANY)] if role == "gateway" else []
    return [*every, *probes]


def _own(config: StoreConfig, features: Sequence[FeatureGrants], role: str) -> list[str]:
    """Return what a service alone publishes."""
    records, ready, events = config.records_stream, config.ready_stream, config.events_stream
    if role == "gateway":
        return [
            f"$JS.API.CONSUMER.CREATE.{ready}.>",
            *(f"$JS.API.CONSUMER.{call}.{ready}.*" for call in ("INFO", "DELETE", "PAUSE")),
            f"$JS.API.CONSUMER.NAMES.{ready}",
            f"$JS.API.CONSUMER.MSG.NEXT.{ready}.*",
            f"$JS.ACK.{ready}.>",
            f"$JS.API.DIRECT.GET.{events}",
            f"$JS.API.STREAM.MSG.GET.{events}",
            config.query(REST),
            config.events,
            config.events_stored,
            config.live_events,
        ]
    if role == "projector":
        return [
            f"$JS.API.DIRECT.GET.{events}",
            f"$JS.API.STREAM.MSG.GET.{events}",
            config.events,
            config.events_stored,
            f"{inbox_of(config, 'gateway')}.>",
        ]
    if role not in _DURABLES:
        return []
    told = [config.event(event_type, ANY, ANY) for event_type in ALERT_TYPES]
    told += [f"$JS.API.STREAM.MSG.GET.{events}", config.events_stored]
    if role == "reaper":
        told.append(config.event("worker.stopped", "worker", ANY))
    made = [subject for name, taken in _durables(config, features)[role].items() for subject in _durable(config, name, taken)]
    return [*made, f"$JS.API.STREAM.MSG.DELETE.{records}", *told]


def _durables(config: StoreConfig, features: Sequence[FeatureGrants]) -> dict[str, dict[str, str]]:
    """Return the subjects of the consumers that the processes of each role share, by their names."""
    found = {role: {name: config.due(name, ANY) for name in names} for role, names in _DURABLES.items()}
    for feature in features:
        for role, durables in feature.durables.items():
            found.setdefault(role, {}).update({name: taken(config) for name, taken in durables.items()})
    return found


def _durable(config: StoreConfig, name: str, taken: str) -> list[str]:
    """How a consumer that a role shares is made, asked after and acknowledged."""
    stream = config.records_stream
    return [
        f"$JS.API.CONSUMER.CREATE.{stream}.{name}.{taken}",
        f"$JS.API.CONSUMER.INFO.{stream}.{name}",
        f"$JS.ACK.{stream}.{name}.>",
    ]


def _of_others(config: StoreConfig, features: Sequence[FeatureGrants], role: str) -> list[str]:
    """What wildcards would let a service do with the consumers of others."""
    stream = config.records_stream
    names = [name for other, durables in _durables(config, features).items() if other != role for name in durables]
    calls = ("CREATE", "DELETE", "INFO", "MSG.NEXT")
    refused = [f"$JS.API.CONSUMER.{call}.{stream}.{name}" for name in names for call in calls]
    refused.append(_taking_the_mark(config))
    return [*refused, *(f"$JS.ACK.{stream}.{name}.>" for name in names)]


def _taking_the_mark(config: StoreConfig) -> str:
    """Return the request that would open a system that has had keys."""
    return f"$JS.API.CONSUMER.DELETE.{config.records_stream}.{HAD_KEYS}"


def _hears(config: StoreConfig, role: str) -> list[str]:
    if role == "gateway":
        return [config.job(ANY), config.wake_of_queue(ANY), config.events_stored, config.live_events]
    return [config.query(REST)] if role == "projector" else []


def _operator(config: StoreConfig) -> list[str]:
    """What people may: all that the API offers, to make the streams, to look at them, and to change keys without a server
    between (`setup`, `doctor`, `keys --nats`).
    """
    streams = _streams(config)
    return [
        *_reads(config),
        config.record("key", REST),
        config.record("service", Wildcard(f"{KEYS}.*")),
        config.audit,
        config.api(ANY, REST),
        "$SRV.>",
        "$JS.API.STREAM.NAMES",
        *(f"$JS.API.STREAM.{call}.{stream}" for stream in streams for call in ("CREATE", "UPDATE")),
        *(f"$JS.API.CONSUMER.{call}.{stream}" for stream in streams for call in ("LIST", "NAMES")),
        config.ring,
    ]


def _backup(config: StoreConfig) -> list[str]:
    streams, events = (config.records_stream, config.events_stream, config.audit_stream), config.events_stream
    calls = ("CREATE", "MSG.NEXT", "DELETE")
    return [
        *(f"$JS.API.STREAM.INFO.{stream}" for stream in streams),
        f"$JS.API.STREAM.MSG.GET.{config.records_stream}",
        *(f"$JS.API.CONSUMER.{call}.{stream}.*" for stream in streams for call in calls),
        f"$JS.API.CONSUMER.NAMES.{events}",
        f"$JS.API.CONSUMER.INFO.{events}.*",
        config.last_backup,
    ]


def _restore(config: StoreConfig) -> list[str]:
    return [
        *(f"$JS.API.STREAM.{call}.{stream}" for stream in _streams(config) for call in ("INFO", "CREATE", "UPDATE", "DELETE")),
        f"$JS.API.STREAM.PURGE.{config.records_stream}",
        f"$JS.API.STREAM.MSG.GET.{config.records_stream}",
        f"$JS.API.DIRECT.GET.{config.records_stream}",
        f"$JS.API.DIRECT.GET.{config.records_stream}.{config.records}",
        config.records,
        *config.hints,
        config.ready_of_queue(ANY),
        config.events,
        config.audit,
    ]


def _asks(config: StoreConfig, operations: Sequence[str], queues: Sequence[str]) -> list[str]:
    if not queues:
        return [config.api(operation, REST) for operation in operations]
    return [config.api(operation, queue) for operation in operations if operation not in _OF_NO_QUEUE for queue in queues]
