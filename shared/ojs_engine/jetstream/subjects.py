"""Subjects, streams and consumer names: the one place that spells them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, Literal
from urllib.parse import unquote

from msgspec import Struct

from ojs_engine.base.errors import invalid
from ojs_engine.base.fields import shown

DEFAULT_NAMESPACE: Final = "ojs"
AUDIT_DAYS: Final = 90
_NAMESPACE: Final = re.compile(r"[a-z][a-z0-9-]{0,31}")
"""One token of a subject. Lower case and without `_`, so that the names of no two namespaces' streams are the same."""
_TAKEN: Final = frozenset({"kv", "obj"})
"""NATS takes streams whose names begin so for buckets and object stores."""
MIN_SERVER: Final = (2, 14, 0)
ADVISED_SERVER: Final = (2, 14, 4)
"""Earlier ones have faults in atomic batches and message schedules, which nats-server's release notes name."""
_SECOND: Final = 1_000_000_000
_DAY: Final = 86_400 * _SECOND
_UNSAFE: Final = re.compile(rb"[^A-Za-z0-9_-]")
_WILD: Final = re.compile(r"[\x00-\x20\x7f*>]")
MAX_CONSUMER_NAME: Final = 200
_PRIORITY_AND_LANE: Final = re.compile(r"\d{3}(?:-(?:front|key|late|for-.*))?")
"""The end of a consumer's name, by `LANES` and `handler_lane`."""
_END_OF_NAME: Final = len("100-front")
HAD_KEYS: Final = "has-had-keys"
"""The mark of a system in which keys have been made."""
_SEAT: Final = "seat"
_PERMIT: Final = "limit"
_HOLD: Final = "hold"
_IN_LINE: Final = 3
"""Dots in the ready subject of a priority's line."""

NoteTopic = Literal["limit", "workflow"]
Kind = Literal[
    "job",
    "blob",
    "idempotency",
    "worker",
    "queue",
    "service",
    "relay",
    "barrier",
    "probe",
    "ring",
    "reset",
    "backup",
]
"""Kinds of records, the first words of their keys. Features have more. A reset goes by this list and by theirs."""
LASTING: Final[frozenset[Kind]] = frozenset({"service", "relay", "barrier", "probe", "ring", "reset", "backup"})
"""What a reset leaves: the services' own, and the time of the last backup."""


Lane = str
"""Where tokens of one priority wait: one of `LANES`, or beside them for those who can run their jobs (`handler_lane`)."""
LANES: Final = ("front", "line", "key", "late")
"""Ahead of a priority, in line, or beside it because a key limits their jobs (docs/adr/014). `late` is read: 0.2 wrote it."""
_FOR: Final = "for"


def lane_of(subject: str) -> Lane:
    """The lane of a ready subject's tokens."""
    if subject.count(".") <= _IN_LINE:
        return "line"
    parts = subject.split(".")
    if parts[-1] in LANES:
        return parts[-1]
    return ".".join(parts[_IN_LINE + 1 :]) if parts[_IN_LINE + 1] == _FOR else "line"


def is_held(subject: str) -> bool:
    """Return whether it is one of tokens that a gate holds."""
    return subject.split(".", 2)[1] == _HOLD


def handler_lane(job_type: str, version: str | None) -> Lane:
    """The lane of jobs of a type and version that somebody who fetched couldn't run (docs/adr/029)."""
    return f"{_FOR}.{encode_token(job_type)}.{encode_token(version or '')}"


@lru_cache(maxsize=1_024)
def handled_by_lane(lane: Lane) -> tuple[str, str | None] | None:
    """The type and version of a `handler_lane`'s jobs; None for other lanes."""
    if not lane.startswith(f"{_FOR}."):
        return None
    _, job_type, version = lane.split(".")
    return decode_token(job_type), decode_token(version) or None


def encode_token(name: str) -> str:
    """Any text as one subject token: bytes outside `A-Za-z0-9_-` become `=XX`; different names stay different."""
    return _UNSAFE.sub(lambda m: b"=%02X" % m[0][0], name.encode()).decode() or "="


def decode_token(token: str) -> str:
    """The text that `encode_token` made a token of."""
    return "" if token == "=" else unquote(token.replace("=", "%"))


class Wildcard(str):
    """A part of a subject that stands for many. Only code makes one: what came from outside never is."""

    __slots__ = ()


ANY: Final = Wildcard("*")
"""Any one token."""
REST: Final = Wildcard(">")
"""Any tokens, to the end."""


def check_names(*names: str) -> None:
    """Refuse what would address other subjects than its own, or end the line of NATS's protocol: the one place where names
    become subjects (a wildcard in an id would read or purge everybody's).
    """
    if _WILD.search("".join(names)) is None:
        return
    for name in names:
        if _WILD.search(name) is not None and type(name) is not Wildcard:
            raise invalid("id", f"{shown(name)} can't name anything here: no wildcards, blanks and control characters")


def is_namespace(name: str) -> bool:
    """Return whether a namespace may have that name."""
    return _NAMESPACE.fullmatch(name) is not None and name not in _TAKEN


def checked_namespace(name: str) -> str:
    """Return the name, if it is a namespace's. Raises ValueError, which says what one is."""
    if is_namespace(name):
        return name
    if _NAMESPACE.fullmatch(name) is None:
        raise ValueError(f"{shown(name)} is not 1 to 32 of a-z, 0-9 and -, beginning with a letter, like {DEFAULT_NAMESPACE}")
    raise ValueError(f"{shown(name)} is how NATS names streams of its own; choose another name")


class StoreConfig(Struct, frozen=True, kw_only=True):
    """Where everything lives. More buckets, should one Raft group not be enough, would be a change of this object alone.

    All names are derived from the `namespace` (docs/adr/054). Raises ValueError for one that `checked_namespace` refuses.
    """

    namespace: str = DEFAULT_NAMESPACE
    """The first token of all subjects, and the beginning of all streams' names."""
    replicas: int = 1
    audit_days: int = 0
    """How long entries of the audit are kept; 0 leaves it as it is, and is `AUDIT_DAYS` for a new stream."""
    busy_queues: int = 2_000
    """How many pairs of queue and priority may have a consumer at a time (docs/adr/029)."""
    service_consumers: int = 5_000
    """How many consumers all processes may have together, some ten each, for what isn't a queue."""

    def __post_init__(self) -> None:
        checked_namespace(self.namespace)

    @property
    def bucket(self) -> str:
        return self.namespace

    @property
    def ready_stream(self) -> str:
        return f"{self.namespace.upper()}_READY"

    @property
    def events_stream(self) -> str:
        return f"{self.namespace.upper()}_EVENTS"

    @property
    def records_stream(self) -> str:
        return f"KV_{self.bucket}"

    # Records

    @property
    def records(self) -> str:
        """All records."""
        return f"$KV.{self.bucket}.>"

    def record(self, kind: str, name: str) -> str:
        """Subject of a record of a `Kind`, or of a feature's.

        `name` must be subject-safe (see `encode_token`). Raises invalid_request, as the others.
        """
        check_names(name)
        return self._key(kind, name)

    def _key(self, kind: str, name: str) -> str:
        return f"$KV.{self.bucket}.{kind}.{name}"

    def job(self, job_id: str) -> str:
        check_names(job_id)
        return self._key("job", job_id)

    def result(self, job_id: str, op: str) -> str:
        """Subject of a job's result that is a record of its own; `op` is that of the ack."""
        check_names(job_id, op)
        return self._key("blob", f"{job_id}.{op}.result")

    @property
    def epoch(self) -> str:
        """Subject of the record that a reset writes last: jobs of lower sequence are gone, without a marker of their own."""
        return self.record("reset", "epoch")

    @property
    def last_backup(self) -> str:
        """Subject of the record that says when the last backup was made."""
        return self.record("backup", "last")

    # Timers and what they become

    @property
    def audit_stream(self) -> str:
        return f"{self.namespace.upper()}_AUDIT"

    @property
    def hints(self) -> list[str]:
        """All timers, due messages and steps: what the stream of records stores beside them."""
        return [f"{self.namespace}.{kind}.>" for kind in ("timer", "due", "step")]

    @property
    def ring(self) -> str:
        """Subject of the message that due messages of records which are timers are copies of: their own bodies may be large."""
        return self.record("ring", "body")

    def timer(self, job_id: str, op: str) -> str:
        check_names(job_id, op)
        return f"{self.namespace}.timer.job.{job_id}.{op}"

    def due(self, service: str, job_id: str) -> str:
        check_names(service, job_id)
        return f"{self.namespace}.due.{service}.{job_id}"

    @property
    def left_by_batches(self) -> str:
        """The timers and due messages by which versions before 0.3.0 finish batches."""
        return f"{self.namespace}.*.batch.>"

    def queue(self, name: str) -> str:
        """Subject of a queue's record; `_default` is nobody's name."""
        check_names(name)
        return self._key("queue", name.replace(".", "_"))

    # Hand-out. Queue names hold dots but never underscores, so the swap is one to one.

    def ready(self, queue: str, priority: int, lane: Lane = "line") -> str:
        check_names(queue)
        subject = f"{self.namespace}.ready.{queue.replace('.', '_')}.{priority + 100:03d}"
        return subject if lane == "line" else f"{subject}.{lane}"

    def lanes_beside(self, queue: str, priority: int) -> str:
        """The ready subjects of a priority, without that of its line."""
        return f"{self.ready(queue, priority)}.>"

    def ready_of_queue(self, queue: str) -> str:
        check_names(queue)
        return f"{self.namespace}.ready.{queue.replace('.', '_')}.>"

    def tokens_of_queue(self, queue: str) -> str:
        """All tokens of a queue, ready or put aside."""
        check_names(queue)
        return f"{self.namespace}.*.{queue.replace('.', '_')}.>"

    def seat(self, queue: str, number: int) -> str:
        """Subject of a message that holds so many places in a bounded queue while jobs are pushed to it."""
        check_names(queue)
        return f"{self.namespace}.ready.{queue.replace('.', '_')}.{_SEAT}.{number}"

    def seat_of_queue(self, queue: str) -> str:
        check_names(queue)
        return f"{self.namespace}.ready.{queue.replace('.', '_')}.{_SEAT}.*"

    def seat_size(self, subject: str) -> int:
        """How many places a message on this ready subject holds; 0 for a token's."""
        parts = subject.split(".")
        return int(parts[4]) if parts[3] == _SEAT else 0

    def key(self, key_id: str) -> str:
        """Subject of the record of a key of the API."""
        return self.record("key", key_id)

    def events_of_types(self, patterns: Sequence[str]) -> list[str]:
        """Subjects that cover the events of some types or wildcards (`*`, `job.*`), and possibly others.

        No two cover the same event: nats-server refuses a consumer with filters that overlap. So a first word has one subject
        for each of its types only if all that is wanted of it are types of two words.
        """
        check_names(*(pattern.removesuffix("*") for pattern in patterns))
        if "*" in patterns:
            return [self.events]
        wanted: dict[str, list[str]] = {}
        for pattern in dict.fromkeys(patterns):
            wanted.setdefault(pattern.partition(".")[0], []).append(pattern)
        subjects: list[str] = []
        for first, ones in wanted.items():
            if all(one.count(".") == 1 and not one.endswith("*") for one in ones):
                subjects += [f"{self.namespace}.events.{one}.*.*" for one in ones]
            else:
                subjects.append(f"{self.namespace}.events.{first}.>")
        return subjects

    # Notes

    def note(self, topic: NoteTopic, scope: str, what: str) -> str:
        """Return the subject of a note to a limit or a workflow; `what` is the job that starts or ends, or a word."""
        check_names(scope, what)
        return f"{self.namespace}.step.{topic}.{scope}.{what}"

    def notes(self, topic: NoteTopic) -> str:
        """Return the subjects of all notes to limits, or to workflows."""
        return f"{self.namespace}.step.{topic}.>"

    # Limits. A scope is `key.<encoded key>` or `queue.<name>`.

    def held_of(self, queue: str) -> str:
        """All tokens of a queue that a gate holds."""
        check_names(queue)
        return f"{self.namespace}.{_HOLD}.{queue.replace('.', '_')}.>"

    def wake_for_room(self, queue: str) -> str:
        """Tells that a queue whose jobs were held back may have room again."""
        check_names(queue)
        return f"{self.namespace}.wake.{queue.replace('.', '_')}.{_PERMIT}"

    def wake_of_queue(self, queue: str) -> str:
        check_names(queue)
        return f"{self.namespace}.wake.{queue.replace('.', '_')}.>"

    def ready_of_wake(self, subject: str) -> str | None:
        """The ready subject whose token has arrived; None if it is no token."""
        ready = f"{self.namespace}.ready.{subject.split('.', 2)[2]}"
        return None if ready.endswith(f".{_PERMIT}") or self.seat_size(ready) else ready

    def ready_consumer(self, subject: str) -> str:
        """Durable name of the one consumer of a ready subject; a long one ends in a hash."""
        name = subject.partition(".")[2].replace(".", "-")
        if len(name) > MAX_CONSUMER_NAME:
            digest = hashlib.sha256(name.encode()).hexdigest()[:32]
            name = f"{name[: MAX_CONSUMER_NAME - 33]}-{digest}"
        return name

    def consumers_of(self, queue: str, names: Iterable[str]) -> list[str]:
        """Return those of the names that are durable names of a queue's ready subjects.

        Where a queue's name is so long that a hash stands for the priority, those of others may be among them.
        """
        start = self.ready_of_queue(queue).partition(".")[2].replace(".", "-").removesuffix(">")
        whole = MAX_CONSUMER_NAME - 33
        alike = [name for name in names if name.startswith(start[:whole])]
        if len(start) > whole - _END_OF_NAME:
            return alike
        return [name for name in alike if _PRIORITY_AND_LANE.fullmatch(name, len(start))]

    # Events

    @property
    def events(self) -> str:
        """All stored events."""
        return f"{self.namespace}.events.>"

    def event(self, event_type: str, scope: str, subject_id: str) -> str:
        """Subject of an event: its type, a queue name or other scope, and the id of what it happened to.

        Events that need no truth (heartbeats, progress) may be published there by anyone, without the relay's headers.
        """
        check_names(event_type, scope, subject_id)
        return f"{self.namespace}.events.{event_type}.{scope.replace('.', '_')}.{subject_id}"

    def live_event(self, event_type: str, scope: str, subject_id: str) -> str:
        """Subject of an event that no stream keeps (heartbeats)."""
        check_names(event_type, scope, subject_id)
        return f"{self.namespace}.live.{event_type}.{scope.replace('.', '_')}.{subject_id}"

    @property
    def live_events(self) -> str:
        """All events that no stream keeps."""
        return f"{self.namespace}.live.>"

    @property
    def events_stored(self) -> str:
        """Published after events were stored, for those who wait for more."""
        return f"{self.namespace}.control.events"

    # The audit (docs/adr/076)

    @property
    def audit(self) -> str:
        """All entries of the audit."""
        return f"{self.namespace}.audit.>"

    def audit_entry(self, event_type: str, principal: str) -> str:
        """Subject of an entry: the two words of its type, and the encoded id of who did it."""
        check_names(event_type, principal)
        return f"{self.namespace}.audit.{event_type}.{principal}"

    # What services ask each other. No stream stores it.

    def query(self, name: str, *, building: bool = False) -> str:
        """Return where projectors with a whole index hear a question; with `building` those that build theirs, who are asked
        second.
        """
        return f"{self.namespace}.query.building.{name}" if building else f"{self.namespace}.query.{name}"

    @property
    def reset(self) -> str:
        """Asks every service to forget all that it holds."""
        return f"{self.namespace}.control.reset"

    @property
    def reset_answers(self) -> str:
        """How the subjects begin that answers to `reset` go to."""
        return f"{self.namespace}.control.answer."

    # The API over NATS (docs/adr/054). No stream stores it.

    def api(self, operation: str, queue: str) -> str:
        """Subject of requests for an operation about a queue; its dots make more tokens."""
        check_names(operation, queue)
        return f"{self.namespace}.api.{operation}.{queue}"

    def queue_of_api(self, subject: str) -> str:
        """The queue that a request's subject names, `_` for any."""
        return subject.split(".", 3)[3]

    # Streams

    def streams(self) -> list[dict[str, Any]]:
        """The stream configurations, as `$JS.API.STREAM.CREATE` takes them."""
        common = {"storage": "file", "num_replicas": self.replicas, "discard": "old", "max_age": 0}
        return [
            common
            | {
                "name": self.records_stream,
                "subjects": [self.records, *self.hints],
                "max_consumers": self.service_consumers,
                "retention": "limits",
                "max_msgs_per_subject": 1,
                "allow_direct": True,
                "allow_atomic": True,
                "allow_msg_ttl": True,
                "allow_msg_schedules": True,
                "allow_rollup_hdrs": True,
                "subject_delete_marker_ttl": 2 * _SECOND,
            },
            common
            | {
                "name": self.ready_stream,
                "subjects": [f"{self.namespace}.ready.>", f"{self.namespace}.hold.>"],
                "max_consumers": self.busy_queues,
                "retention": "workqueue",
                "allow_direct": True,
                "republish": {"src": f"{self.namespace}.ready.>", "dest": f"{self.namespace}.wake.>", "headers_only": True},
            },
            common
            | {
                "name": self.events_stream,
                "subjects": [self.events],
                "retention": "limits",
                "allow_direct": True,
                "allow_atomic": True,
                "max_age": 7 * _DAY,
                "max_msgs": 1_000_000,
            },
            common
            | {
                "name": self.audit_stream,
                "subjects": [self.audit],
                "retention": "limits",
                "allow_direct": True,
                "deny_delete": True,
                "deny_purge": True,
                "max_age": (self.audit_days or AUDIT_DAYS) * _DAY,
                "max_msgs": 5_000_000,
            },
        ]


def config_of(namespace: str | None) -> StoreConfig:
    """Return the names of a namespace, or of the default one. Raises ValueError for what can't be one."""
    return StoreConfig() if namespace is None else StoreConfig(namespace=namespace)
