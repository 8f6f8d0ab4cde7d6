"""The client: operations of the server, for one event loop."""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar
from uuid import uuid4

import msgspec

from ojs_api import jobs as contract
from ojs_api.bulk import PUSH_ALL, PUSH_EACH
from ojs_nats import _deprecated
from ojs_nats._closing import Closing
from ojs_nats._connect import authorized, transport, url_of
from ojs_nats._durations import Duration, milliseconds
from ojs_nats._hooks import ClientHooks
from ojs_nats._operations import PUSH, AnyOperation, Request
from ojs_nats._refusals import refused
from ojs_nats._requests import check_is_job, envelope
from ojs_nats._results import Results
from ojs_nats._tls import check_scheme
from ojs_nats._transport import Transport
from ojs_nats.errors import DuplicateError, JobCancelled, JobDropped, JobFailed, NotFoundError, RefusedError
from ojs_nats.jobs import Job, JobRequest
from ojs_nats.models.jobs import BulkPushed, PushedItem
from ojs_nats.operations._subject import part
from ojs_nats.operations.crons import Crons
from ojs_nats.operations.dead_letters import DeadLetters
from ojs_nats.operations.events import Events
from ojs_nats.operations.jobs import Jobs
from ojs_nats.operations.keys import Keys
from ojs_nats.operations.pools import Pools
from ojs_nats.operations.queues import Queues
from ojs_nats.operations.rate_limits import RateLimits
from ojs_nats.operations.schemas import Schemas
from ojs_nats.operations.system import ServerSystem
from ojs_nats.operations.webhooks import Webhooks
from ojs_nats.operations.workers import Workers
from ojs_nats.operations.workflows import Workflows
from ojs_nats.tls import Tls

__all__ = ["Client", "JobHandle"]

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

_REFUSED: Final = 422
"""The status of a push of several jobs that were all refused, and of each refused one."""


class _One(msgspec.Struct):
    job: Job | None = None


class _Many(msgspec.Struct):
    jobs: list[Job]
    dropped: list[int] = []


@dataclass(frozen=True)
class _Inside:
    """What the package takes from a client: the way to the server, and what pushes and results go through."""

    transport: Transport
    hooks: ClientHooks


class Client(Closing):
    """A client of a server, for the event loop that it is first used in; `async with` closes its connections.

    A call is repeated while no server answers, or while servers answer that they can't work, unless that might do it
    twice. A push never makes two jobs, since it names its job.

    Args:
        url: The server's address, `http://`, `https://`, `nats://` or `tls://`. None means OJS_URL, or
            http://127.0.0.1:8080.
        retry_for: For how long a call is repeated while no server answers, in seconds or as `"30s"`.
        token: The key that the server asks for. None means OJS_AUTH_TOKEN, or OJS_API_KEY.
        headers: Headers of every request, such as a proxy before the server asks for.
        tls: For `https://` addresses, a CA of your own or a client's certificate. None means the files that
            OJS_CA_FILE, OJS_CERT_FILE and OJS_KEY_FILE name.
        hooks: What pushes and results go through. An app's client has its middleware there.

    Attributes:
        url: The server's address.
        jobs: Operations on jobs.
        queues: Operations on queues.
        dead_letters: Operations on jobs that have failed for good.
        crons: Operations on cron entries.
        events: The stream of events.
        workflows: Operations on workflows.
        workers: Operations on workers.
        webhooks: Operations on webhook subscriptions.
        schemas: Operations on schemas of arguments.
        rate_limits: Operations on limits that jobs share.
        pools: Operations on pools of queues.
        keys: Operations on API keys.
        system: The server itself: health, statistics, settings, maintenance.

    Raises:
        ValueError: The address names no server, or files of TLS can't be used.
        RefusedError, UnavailableError: By every call that asks the server.

    Example:
        >>> client = Client("http://127.0.0.1:8080", retry_for="5s")
        >>> client.url
        'http://127.0.0.1:8080'
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        retry_for: Duration = 30.0,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        tls: Tls | ssl.SSLContext | None = None,
        hooks: ClientHooks | None = None,
    ) -> None:
        self.url = url_of(url)
        check_scheme(self.url, tls)
        shown = authorized(headers, token)
        own = self._inside = _Inside(
            transport(self.url, retry_for_s=milliseconds(retry_for) / 1_000, headers=shown, tls=tls), hooks or ClientHooks()
        )
        self.jobs = Jobs(own.transport)
        self.queues = Queues(own.transport)
        self.dead_letters = DeadLetters(own.transport)
        self.crons = Crons(own.transport, own.hooks)
        self.events = Events(own.transport)
        self.workflows = Workflows(own.transport, self.events, self.jobs, own.hooks)
        self.workers = Workers(own.transport)
        self.webhooks = Webhooks(own.transport)
        self.schemas = Schemas(own.transport)
        self.rate_limits = RateLimits(own.transport)
        self.pools = Pools(own.transport)
        self.keys = Keys(own.transport)
        self.system = ServerSystem(own.transport)

    async def close(self) -> None:
        """Close the connections. The next request opens new ones."""
        await self._inside.transport.close()

    async def push(self, new: JobRequest[R]) -> JobHandle[R]:
        """Push a job.

        Args:
            new: The job, as `send_email.job("ada@example.org")` makes it.

        Returns:
            A handle of the job. With `Unique(on_conflict="ignore")` it may be an earlier job's.

        Raises:
            TypeError: `new` isn't a `JobRequest`, or JSON can't hold an argument.
            DuplicateError: Another job has the id, or the identity of a unique job.
            QueueFullError, QueueClosedError: The queue takes no more jobs.
            JobDropped: Middleware dropped the job.
            UnavailableError: No server answered for as long as `retry_for`.
        """
        check_is_job(new)
        new = await self._inside.hooks.prepared(new)
        found = await self._pushed(PUSH, envelope(new), [new])
        return JobHandle(self, found[0], new.returns, new.queue)

    async def push_all(self, jobs: Sequence[JobRequest[R]]) -> list[JobHandle[R]]:
        """Push all of the jobs or, if one is refused, none of them.

        Args:
            jobs: The jobs, as `send_email.job("ada@example.org")` makes them.

        Returns:
            The handles, in the order of the jobs.

        Raises:
            ValueError: A job is there twice.
            RefusedError: A job was refused, as by `push`. No job was pushed.
            UnavailableError: No server answered for as long as `retry_for`.
        """
        jobs = await self._prepared(jobs)
        if not jobs:
            return []
        found = await self._pushed(PUSH_ALL, {"jobs": [envelope(new) for new in jobs]}, jobs)
        return [JobHandle(self, job_id, new.returns, new.queue) for job_id, new in zip(found, jobs, strict=True)]

    async def push_each(self, jobs: Sequence[JobRequest[R]]) -> list[JobHandle[R] | RefusedError]:
        """Push each job that isn't refused.

        Args:
            jobs: The jobs, as `send_email.job("ada@example.org")` makes them.

        Returns:
            For each job, in order, its handle, or the error if it was refused.

        Raises:
            ValueError: A job is there twice.
            UnavailableError: No server answered for as long as `retry_for`.
        """
        jobs = await self._prepared(jobs)
        if not jobs:
            return []
        asked = {"jobs": [envelope(new) for new in jobs], "idempotency_key": str(uuid4())}
        request = Request(PUSH_EACH, body=asked, queue=_queue_of(jobs), answered_as_well=frozenset({_REFUSED}))
        answer = await self._inside.transport.send(request)
        return [self._outcome(jobs[item.index], item) for item in part(answer, BulkPushed).items]

    async def _prepared(self, jobs: Iterable[JobRequest[R]]) -> list[JobRequest[R]]:
        """The jobs after the app's middleware. Raises ValueError for one that is there twice."""
        found: dict[str, JobRequest[R]] = {}
        for new in jobs:
            check_is_job(new)
            if new.id in found:
                raise ValueError(
                    f"the job {new.id} ({new.type}) is there twice: a JobRequest is one job, also with other options, "
                    "so make a new one for each push"
                )
            found[new.id] = new
        return [await self._inside.hooks.prepared(new) for new in found.values()]

    async def _is_there(self, new: JobRequest[Any]) -> bool:
        """Whether the job has been pushed: another one of its id isn't it."""
        try:
            answer = await self._inside.transport.send(Request(contract.GET, {"job_id": new.id}, queue=new.queue))
        except NotFoundError:
            return False
        found = part(answer, _One).job
        return found is not None and found.type == new.type.partition("@")[0]

    def _outcome(self, new: JobRequest[R], item: PushedItem) -> JobHandle[R] | RefusedError:
        known = new.id if item.job is None else item.job.id
        # One without an error is there, or its policy of uniqueness is content with another.
        if item.error is None or item.status == "created" or (item.job is not None and known == new.id):
            return JobHandle(self, known, new.returns, new.queue)
        return refused(item.error.code, item.error.message, status=_REFUSED, details=item.error.details)

    async def _pushed(self, operation: AnyOperation, body: Any, jobs: Sequence[JobRequest[Any]]) -> list[str]:
        """The ids of the jobs that are there now: with a policy of uniqueness, a job's may be another one's."""
        try:
            answer = await self._inside.transport.send(Request(operation, body=body, queue=_queue_of(jobs)))
        except DuplicateError as error:
            if error.existing_job_id not in {new.id for new in jobs}:
                raise
            # An earlier try of this push was carried out though nobody heard, if all of its jobs are there.
            for new in jobs:
                if not await self._is_there(new):
                    raise error from None
            return [new.id for new in jobs]
        if operation is PUSH:
            found = part(answer, _One).job
            if found is None:
                raise JobDropped("middleware of the server has dropped the job")
            return [found.id]
        many = part(answer, _Many)
        if many.dropped:
            raise JobDropped(f"middleware of the server has dropped {len(many.dropped)} of the {len(jobs)} jobs", many.dropped)
        return [job.id for job in many.jobs]


def _queue_of(jobs: Sequence[JobRequest[Any]]) -> str | None:
    """The queue of all of them, if they have the same."""
    queues = {new.queue for new in jobs}
    return queues.pop() if len(queues) == 1 else None


class JobHandle(Generic[R_co]):
    """A handle of a pushed job. `push` returns one.

    Attributes:
        id: The job's id.

    Example:
        ```python
        handle = await send_email.push("ada@example.org")
        print(await handle.result(timeout="1m"))
        ```
    """

    def __init__(self, client: Client, job_id: str, returns: Any = Any, queue: str | None = None) -> None:
        self._client = client
        self.id = job_id
        self._returns = returns
        self._queue = queue

    def __repr__(self) -> str:
        return f"JobHandle({self.id})"

    async def job(self) -> Job:
        """Return the job as it is now.

        Raises:
            NotFoundError: The job isn't stored any more.
        """
        return await self._client.jobs.get(self.id, queue=self._queue)

    async def cancel(self) -> Job:
        """Cancel the job. A handler that runs it is stopped.

        Returns:
            The job after that.

        Raises:
            ConflictError: The job has ended.
            NotFoundError: The job isn't stored any more.
        """
        return await self._client.jobs.cancel(self.id, queue=self._queue)

    async def result(self, timeout: Duration | None = None) -> R_co:
        """Wait for the job's end, and return what its handler returned, as the type of the handler's hint.

        Args:
            timeout: How long to wait, in seconds or as `"1m"`. None waits without a limit.

        Raises:
            JobFailed: The job has failed for good.
            JobCancelled: The job was cancelled.
            WaitTimeoutError: The job hadn't ended after `timeout`.
            ResultGone: The result isn't kept any more.
            OjsError: The result isn't of the hint's type.
        """
        job = await self._client.jobs.wait(self.id, timeout, queue=self._queue)
        if job.state == "cancelled":
            raise JobCancelled(f"job {self.id} has been cancelled")
        if job.state != "completed":
            said = f": {job.error.message}" if job.error else ""
            raise JobFailed(f"job {self.id} has failed for good after {job.attempt} attempts{said}", job.error)
        results = Results(self._client._inside.hooks)
        found: R_co = results.read(self.id, job.result, self._returns)
        await results.settled(self._client.jobs.result)
        return found


_deprecated.arguments(Client, patience="retry_for")
_deprecated.methods(
    Client, job="jobs.get", cancel="jobs.cancel", ended="jobs.wait", push_many="push_all", push_bulk="push_each"
)
