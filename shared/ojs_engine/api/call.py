"""A request as handlers see it, and their answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar, Concatenate, Final, NamedTuple, ParamSpec, TypeVar

import msgspec
from msgspec import Struct

from ojs_api import words
from ojs_engine.access.admission import Admission
from ojs_engine.access.client_certificates import ClientCertificate
from ojs_engine.access.permissions import Need
from ojs_engine.access.principal import EVERYBODY, Principal
from ojs_engine.api.large_bodies import LargeBodies
from ojs_engine.base.errors import OjsError, not_found
from ojs_engine.base.fields import shown
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.domain.job import Job
from ojs_engine.domain.unique import policy_of
from ojs_engine.wire.dialects.readers import Dialect
from ojs_engine.wire.members import Extended
from ojs_engine.wire.queries import Queries

P = ParamSpec("P")
T = TypeVar("T")

_UNASKED: Final = Admission(EVERYBODY)
"""Of a call that hasn't come to the door."""


Binding = words.Binding


class Response(NamedTuple):
    """A status, an answer and headers beyond those that every answer has. Bytes are JSON, the same for all readers."""

    status: int
    answer: bytes | Struct | Extended[Any]
    headers: tuple[tuple[str, str], ...] = ()
    of_others: bool = False
    """Whether it shows jobs that the request hasn't sent itself, although it pushes some."""


class Call(ABC):
    """A request on its way through a handler, whichever way it came. `parameters` are those of its path, in order."""

    __slots__ = (
        "_aside",
        "_limits",
        "admission",
        "bounded",
        "counted",
        "dialect",
        "held",
        "hides",
        "hides_others",
        "if_lost",
        "parameters",
        "principal",
        "queue",
        "request_id",
        "room",
    )

    binding: ClassVar[Binding] = "http"

    def __init__(
        self,
        dialect: Dialect,
        parameters: tuple[str, ...],
        limits: PayloadLimits,
        aside: LargeBodies,
        queue: str | None = None,
        room: int | None = None,
    ) -> None:
        self._limits = limits
        self._aside = aside
        self.dialect = dialect
        self.admission = _UNASKED
        """Who asks, as long as that holds. The door says so before the handler gets the call."""
        self.principal = _UNASKED.principal
        """The caller, narrowed to the queue of the request's subject."""
        self.parameters = parameters
        self.request_id = ""
        """What the answer and the logs call the request. Its binding says so."""
        self.queue = queue
        """The one queue that it may be about by its subject; None for any."""
        self.bounded = queue is not None
        """Whether there is anything that it may not be about."""
        self.held = False
        """Whether its handler has asked what it may be about."""
        self.counted = False
        """Whether its handler has counted the jobs that it pushes."""
        self.hides = False
        """Whether what jobs carry is left out of its answers. The door says so."""
        self.hides_others = False
        """The same of an answer about jobs that others have pushed."""
        self.room = room
        """How many bytes the answer's body may have; None for any number."""
        self.if_lost: Callable[[], None] | None = None
        """What its handler wants to be done if it turns out that nobody has got the answer; HTTP never tells."""

    @property
    def gone(self) -> bool:
        """Whether no answer is to be given any more: the client doesn't wait, or its key has ended meanwhile."""
        return self.admission.over or self.left

    @property
    @abstractmethod
    def left(self) -> bool:
        """Whether the client doesn't wait any longer, so that no answer can reach it."""

    @property
    @abstractmethod
    def address(self) -> str:
        """Where it comes from, as far as that is known."""

    @property
    def session(self) -> str | None:
        """The session that a browser sends with it, if it is one of our pages that asks. Raises permission_denied."""
        return None

    @property
    def shown_session(self) -> str | None:
        """The session that a browser sends with it, of whichever page."""
        return None

    @property
    def old_session(self) -> str | None:
        """The same, under the name that its cookie had in earlier versions."""
        return None

    def session_cookie(self, session: str, lasts_s: int, *, old: bool = False) -> tuple[str, str]:
        """Return the header by which a browser keeps a session, or forgets it after 0 s.

        `old` is whether under the name of earlier versions.
        """
        raise NotImplementedError(f"a request over {self.binding} is no browser's")

    def hang_up(self) -> None:
        """End its connection, if it has one of its own."""
        return

    async def has_left(self) -> bool:
        """The same, for those who can wait until it is found out."""
        return self.gone

    @property
    @abstractmethod
    def queries(self) -> Queries:
        """The parameters that aren't of the path. Raises invalid_request for some that aren't UTF-8."""

    @abstractmethod
    def header(self, name: str) -> str | None:
        """Return one of the request's headers. Raises invalid_request for one that isn't UTF-8."""

    @abstractmethod
    def remark(self, name: str) -> str | None:
        """Return a header that decides nothing: what of it isn't UTF-8 has been replaced."""

    @abstractmethod
    async def body(self, limit: int) -> bytes:
        """The decompressed body of at most `limit` bytes; empty if there is none.

        Raises envelope_too_large before anything beyond the limit is read, unsupported_compression, request_timeout.
        """

    @property
    def client_certificate(self) -> ClientCertificate | None:
        """What the client has shown of itself, where TLS asks for it (`--client-ca`)."""
        return None

    def query(self, name: str) -> str | None:
        """One of the parameters that aren't of the path."""
        return self.queries.get(name)

    async def read(self, parse: Callable[Concatenate[bytes, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The body of a request without jobs, as `parse(body, …)` reads it. Raises what `body` and `parse` raise."""
        return await self.parsed(await self.body(self._limits.max_control_bytes), parse, *args, **kwargs)

    async def read_jobs(self, parse: Callable[Concatenate[bytes, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The same for jobs, workflows and results, which may be large."""
        return await self.parsed(await self.body(self._limits.max_body_bytes), parse, *args, **kwargs)

    async def parsed(self, body: bytes, parse: Callable[Concatenate[bytes, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """`parse(body, …)`, beside the event loop if the body is large; for what `args` say of the moment after it arrived."""
        return await self._aside.run(len(body), parse, body, *args, **kwargs)

    # A key has limits (docs/adr/072)

    def count_pushes(self, number: int) -> None:
        """Count the jobs that the request pushes. Raises rate_limited if its key has pushed too many lately."""
        self.counted = True
        if (allowance := self.admission.allowance) is not None:
            allowance.count_pushes(number)

    def waiting(self) -> AbstractContextManager[None]:
        """In here the request waits for something to happen. Raises rate_limited if too many of its key do."""
        allowance = self.admission.allowance
        return nullcontext() if allowance is None else allowance.place("waiting")

    # A request may be about some queues and job types alone: its subject says so (docs/adr/054), or its key (docs/adr/072)

    def enter(self, admission: Admission) -> None:
        """Go on in the name of a caller that was let in. A queue in the subject narrows it as a key is narrowed."""
        self.admission = admission
        principal = admission.principal
        if self.queue is not None and principal.enters(self.queue):
            principal = msgspec.structs.replace(principal, queues=(self.queue,))
        self.principal = principal
        self.bounded = self.queue is not None or principal.narrowed

    def own_scope(self, name: str) -> str:
        """Return a name for what callers of another reach must not meet, such as the requests under an idempotency key."""
        return f"{name} {self.caller}" if self.principal.narrowed else name

    @property
    def caller(self) -> str:
        """Name who asks: the principal, and the queue of the subject, as teams without keys are told from each other by it."""
        return self.principal.id if self.queue is None else f"{self.principal.id} {self.queue}"

    def _narrowing(self) -> str:
        if self.queue is not None:
            return f"the request is in the name of queue {self.queue!r}"
        return f"key {self.principal.name!r} is narrowed"

    def require_queue(self, *queues: str, job_type: str | None = None) -> None:
        """Raises permission_denied if the request may not be about jobs of a type in one of them; without a type, about all."""
        if self.bounded:
            self._hold(queues)
            for queue in queues:
                if not self.principal.sees(queue, job_type):
                    raise _beyond(self.principal, queue, job_type)

    def require_entry(self, *queues: str) -> None:
        """The same, if the job types are looked at elsewhere."""
        if self.bounded:
            self._hold(queues)
            for queue in queues:
                if not self.principal.enters(queue):
                    raise _beyond(self.principal, queue, None)

    def admit(self, draft: Job) -> None:
        """Raises permission_denied if the request may not push a job. A unique one may only meet jobs that it reaches."""
        self.require_queue(draft.queue, job_type=draft.type)
        principal = self.principal
        if principal.narrowed and draft.unique:
            policy = policy_of(draft)
            if policy.literal is not None or (principal.queues and "queue" not in policy.dimensions):
                raise OjsError(
                    "permission_denied",
                    f"{self._narrowing()}, and unique.keys lacks the queue: the job could meet those of others",
                    hint='Make it unique by `keys`, with "queue" among them.',
                    details={"field": "unique.keys", "queues": list(principal.queues), "types": list(principal.types)},
                )

    def narrowed_to(self, queue: str | None, job_type: str | None) -> tuple[str | None, str | None]:
        """The queue and the job type that a filter is to name, so that it finds nothing beyond what the request may
        be about.

        Where there is but one, it needn't be named. Raises permission_denied, which says what to name.
        """
        if not self.bounded:
            return queue, job_type
        principal = self.principal
        queue = queue or self.queue or _only(principal, principal.queues, "queue")
        job_type = job_type or _only(principal, principal.types, "type")
        if queue is not None:
            self.require_queue(queue, job_type=job_type)
        elif not principal.sees("", job_type):
            raise _beyond(principal, "", job_type)
        self.held = True
        return queue, job_type

    def require_one_queue(self, queue: str | None) -> str | None:
        """The queue that an answer about all job types is to be about. Raises permission_denied."""
        if not self.bounded:
            return queue
        queue = queue or self.queue or _only(self.principal, self.principal.queues, "queue")
        self.require_queue(queue or "")
        return queue

    def sees(self, queue: str, job_type: str | None = None) -> bool:
        """Whether the request may be about jobs of a type in a queue; without a type, about all."""
        self.held = True
        return self.queue in {None, queue} and self.principal.sees(queue, job_type)

    def queue_patterns(self) -> tuple[str, ...]:
        """Patterns of the queues that an answer about queues is to have; none: all. Raises permission_denied for some types."""
        if self.principal.types:
            raise _beyond(self.principal, (*self.principal.queues, "*")[0], None)
        self.held = True
        return self.principal.queues if self.queue is None else (self.queue,)

    def _hold(self, queues: Iterable[str]) -> None:
        self.held = True
        if self.queue is None:
            return
        for queue in queues:
            if queue != self.queue:
                raise OjsError(
                    "permission_denied",
                    f"a request in the name of queue {self.queue!r} can't be about queue {shown(queue)}",
                    hint="Ask on the subject that ends with the queue's name.",
                    details={"field": "queue", "queue": self.queue},
                )

    @property
    def key_id(self) -> str | None:
        """The id of the caller's key; None where none is needed."""
        return None if self.admission.principal is EVERYBODY else self.principal.id

    def require(self, permission: Need, what: str) -> None:
        """Raises permission_denied if the caller doesn't have the permission that `what` needs."""
        if permission not in self.principal.permissions:
            raise OjsError(
                "permission_denied",
                f"{what} needs the permission {permission!r}, which key {self.principal.name!r} doesn't have",
                hint="Ask with a key that has it: docs/reference/access.md lists roles and what each operation needs.",
                details={"permission": permission, "operation": what},
            )

    def require_payloads(self, field: str, asked: object) -> None:
        """Raises permission_denied if the request finds jobs by what they carry, which it may not see, and would guess so."""
        if asked and self.hides:
            raise OjsError(
                "permission_denied",
                f"{field} looks into what jobs carry, which needs the permission 'payloads'; "
                f"key {self.principal.name!r} doesn't have it",
                hint="Look for jobs by state, queue, type, tag, error_type or worker, or with a key that has it.",
                details={"permission": "payloads", "field": field},
            )

    def own(self, job: Job) -> Job:
        """The job, if the request may be about it. Raises not_found."""
        if self.bounded:
            self.held = True
            if not self.sees(job.queue, job.type):
                raise not_found("job", job.id)
        return job

    async def require_job(self, job_id: str, get: Callable[[str], Awaitable[Job]]) -> None:
        """`own` for what doesn't read the job itself."""
        if self.bounded:
            self.own(await get(job_id))


def _only(principal: Principal, patterns: Sequence[str], name: str) -> str | None:
    """The one name that patterns stand for; None if there are none. Raises permission_denied if they stand for several."""
    if not patterns:
        return None
    if len(patterns) == 1 and "*" not in patterns[0]:
        return patterns[0]
    raise OjsError(
        "permission_denied",
        f"key {principal.name!r} is narrowed, so the request has to name one {name}",
        hint=f"Name one of the key's in `{name}`.",
        details={"field": name, "queues": list(principal.queues), "types": list(principal.types)},
    )


def _beyond(principal: Principal, queue: str, job_type: str | None) -> OjsError:
    what = f"jobs of type {shown(job_type)} in queue" if job_type is not None else "queue"
    if job_type is None and principal.enters(queue):
        what = "all job types of queue"
    return OjsError(
        "permission_denied",
        f"key {principal.name!r} is narrowed, and doesn't reach {what} {shown(queue)}",
        hint="Ask about the queues and job types of the key, or with a key that reaches this one.",
        details={"field": "queue", "queues": list(principal.queues), "types": list(principal.types)},
    )
