"""A server in memory for the tests of an app: `fake` runs jobs when the test says so, `inline` runs each when it is
pushed.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final

import msgspec

from ojs_nats import _portal
from ojs_nats._connect import stand_ins
from ojs_nats._durations import Duration, milliseconds
from ojs_nats.app import App
from ojs_nats.errors import DuplicateError, JobFailed, OjsError, QueueFullError, UnavailableError
from ojs_nats.jobs import Job
from ojs_nats.testing._clock import Clock
from ojs_nats.testing._matching import Wanted, What, listing, wanted
from ojs_nats.testing._running import running
from ojs_nats.testing._store import Held, Store
from ojs_nats.testing._transport import MemoryTransport

_numbers: Final = itertools.count(1)
_EVER: Final = -1


class Drained(msgspec.Struct, frozen=True):
    """The outcome of `drain`.

    Attributes:
        performed: How many attempts ran.
        completed: How many of the jobs are completed.
        failed: How many of the jobs have failed, for good or until their next attempt.
    """

    performed: int
    completed: int
    failed: int


class Fake:
    """The jobs of one test. The fixtures `ojs_fake` and `ojs_inline` give one, and so do `fake` and `inline`.

    Assertions take `what`, a definition or a job type, and any number of arguments, in order or by the names of the
    handler's parameters. A job matches if those arguments are equal, as JSON has them. The names of assertions are
    those of ojs-testing §6 and §7.

    Attributes:
        clock: The time that jobs wait by.

    Example:
        >>> from ojs_nats import App
        >>> from ojs_nats.testing import fake
        >>> app = App("http://127.0.0.1:8080")
        >>> @app.job("email.send")
        ... def send_email(to: str) -> str:
        ...     return f"sent to {to}"
        >>> with fake(app) as jobs:
        ...     handle = send_email.push_sync("ada@example.org")
        ...     found = jobs.assert_enqueued(send_email, to="ada@example.org")
        ...     drained = jobs.drain_sync()
        ...     print(drained.completed, handle.result())
        1 sent to ada@example.org
    """

    def __init__(self, app: App, *, inline: bool) -> None:
        self.clock = Clock(self._come_due)
        self._app = app
        self._inline = inline
        self._store = Store(self.clock.now)
        self._to_fail: defaultdict[str, deque[tuple[BaseException, int]]] = defaultdict(deque)
        self._push_fails: deque[OjsError] = deque()
        self._inside = functools.partial(MemoryTransport, store=self._store, trouble=self._trouble, pushed=self._pushed)

    # Assertions

    def assert_enqueued(
        self,
        what: What,
        /,
        *args: Any,
        queue: str | None = None,
        count: int | None = None,
        meta: dict[str, Any] | None = None,
        tags: list[str] | None = None,
        priority: int | None = None,
        delay: Duration | None = None,
        at: datetime | None = None,
        **kwargs: Any,
    ) -> Job:
        """Assert that a matching job was pushed.

        Args:
            what: A definition, or a job type.
            *args: The job's first arguments, in order.
            queue: The job's queue. None matches any.
            count: How many jobs match. None means at least one.
            meta: Members that the job's `meta` has. None matches any.
            tags: Tags that the job has. None matches any.
            priority: The job's priority. None matches any.
            delay: The job's delay, in seconds or as `"5m"`. None matches any.
            at: The time that the job is scheduled at. None matches any.
            **kwargs: Arguments by the names of the handler's parameters.

        Returns:
            The last job that matches.

        Raises:
            AssertionError: No job matches, or another number of jobs. The message lists the jobs that were pushed.
            TypeError: The handler has no such parameter.
        """
        meant = self._wanted(what, args, kwargs, queue=queue, meta=meta, tags=tags, priority=priority, delay=delay, at=at)
        return self._asserted(meant, lambda _: True, "enqueued", count)

    def refute_enqueued(self, what: What, /, *args: Any, queue: str | None = None, **kwargs: Any) -> None:
        """Assert that no matching job was pushed.

        Args:
            what: A definition, or a job type.
            *args: The job's first arguments, in order.
            queue: The job's queue. None matches any.
            **kwargs: Arguments by the names of the handler's parameters.

        Raises:
            AssertionError: A job matches.
        """
        self._refuted(self._wanted(what, args, kwargs, queue=queue), lambda _: True, "enqueued")

    def all_enqueued(self, what: What | None = None, /, *args: Any, queue: str | None = None, **kwargs: Any) -> list[Job]:
        """Return all matching jobs as they are now, in the order of their pushes.

        Args:
            what: A definition, or a job type. None matches any.
            *args: The job's first arguments, in order.
            queue: The job's queue. None matches any.
            **kwargs: Arguments by the names of the handler's parameters.
        """
        if what is None:
            return [held.job for held in self._store.all() if queue in {None, held.job.queue}]
        meant = self._wanted(what, args, kwargs, queue=queue)
        return [held.job for held in self._store.all() if meant.misfit(held.job) is None]

    def assert_performed(
        self, what: What, /, *args: Any, queue: str | None = None, count: int | None = None, **kwargs: Any
    ) -> Job:
        """Assert that the handler of a matching job ran.

        Args:
            what: A definition, or a job type.
            *args: The job's first arguments, in order.
            queue: The job's queue. None matches any.
            count: How many jobs match. None means at least one.
            **kwargs: Arguments by the names of the handler's parameters.

        Returns:
            The last job that matches.

        Raises:
            AssertionError: No job matches, or another number of jobs.
        """
        return self._asserted(self._wanted(what, args, kwargs, queue=queue), _performed, "performed", count)

    def refute_performed(self, what: What, /, *args: Any, queue: str | None = None, **kwargs: Any) -> None:
        """Assert that no handler of a matching job ran.

        Args:
            what: A definition, or a job type.
            *args: The job's first arguments, in order.
            queue: The job's queue. None matches any.
            **kwargs: Arguments by the names of the handler's parameters.

        Raises:
            AssertionError: The handler of a matching job ran.
        """
        self._refuted(self._wanted(what, args, kwargs, queue=queue), _performed, "performed")

    def assert_completed(
        self, what: What, /, *args: Any, queue: str | None = None, count: int | None = None, **kwargs: Any
    ) -> Job:
        """Assert that a matching job is completed.

        Args:
            what: A definition, or a job type.
            *args: The job's first arguments, in order.
            queue: The job's queue. None matches any.
            count: How many jobs match. None means at least one.
            **kwargs: Arguments by the names of the handler's parameters.

        Returns:
            The last job that matches.

        Raises:
            AssertionError: No job matches, or another number of jobs.
        """
        return self._asserted(self._wanted(what, args, kwargs, queue=queue), _completed, "completed", count)

    def assert_failed(
        self, what: What, /, *args: Any, queue: str | None = None, count: int | None = None, **kwargs: Any
    ) -> Job:
        """Assert that a matching job has failed, for good or until its next attempt.

        Args:
            what: A definition, or a job type.
            *args: The job's first arguments, in order.
            queue: The job's queue. None matches any.
            count: How many jobs match. None means at least one.
            **kwargs: Arguments by the names of the handler's parameters.

        Returns:
            The last job that matches.

        Raises:
            AssertionError: No job matches, or another number of jobs.
        """
        return self._asserted(self._wanted(what, args, kwargs, queue=queue), _has_failed, "failed", count)

    def assert_job_state(self, job_id: str, state: str) -> Job:
        """Assert that a job is in a state.

        Args:
            job_id: The job's id.
            state: The state, such as `"completed"`.

        Returns:
            The job.

        Raises:
            AssertionError: The job is in another state.
            NotFoundError: There is no such job.
        """
        job = self._store.get(job_id).job
        if job.state != state:
            said = f": {job.error.type}: {job.error.message}" if job.error is not None else ""
            raise AssertionError(f"job {job_id} ({job.type}) is {job.state}, not {state}{said}")
        return job

    def clear_all(self) -> None:
        """Forget all jobs, and all failures that were set."""
        self._store.clear()
        self._to_fail.clear()
        self._push_fails.clear()

    # Failures

    def fail_next(self, what: What, error: BaseException, *, times: int = 1) -> None:
        """Make the handler's next runs fail.

        Args:
            what: A definition, or a job type.
            error: The exception that is raised in place of running the handler.
            times: How many runs fail.
        """
        self._to_fail[what if isinstance(what, str) else what.type].append((error, times))

    def fail_all(self, what: What, error: BaseException) -> None:
        """Make every run of the handler fail.

        Args:
            what: A definition, or a job type.
            error: The exception that is raised in place of running the handler.
        """
        self.fail_next(what, error, times=_EVER)

    def fail_push(self, error: type[OjsError] | OjsError = UnavailableError, *, times: int = 1) -> None:
        """Make the next pushes fail.

        Args:
            error: `UnavailableError`, `QueueFullError` or `DuplicateError`, or an error of your own making.
            times: How many pushes fail.

        Raises:
            TypeError: `error` is another class.
        """
        self._push_fails.extend([error if isinstance(error, OjsError) else _made(error)] * times)

    # Running

    async def drain(
        self,
        queue: str | None = None,
        *,
        max_jobs: int | None = None,
        timeout: Duration = "30s",
        with_scheduled: bool = False,
        with_retries: bool = True,
    ) -> Drained:
        """Run the jobs that are available, and those that they push, until none is left: one at a time, by priority and
        age.

        A failed job is tried again at once, as often as its policy says. Exceptions of handlers aren't raised.

        Args:
            queue: The queue. None means all queues.
            max_jobs: How many attempts to run at most. None means any number.
            timeout: How long this may take, in seconds or as `"30s"`.
            with_scheduled: Whether scheduled jobs run, too, without waiting.
            with_retries: Whether failed jobs are tried again.

        Returns:
            The number of attempts, and how the jobs ended.

        Raises:
            AssertionError: It takes longer than `timeout`.
        """
        performed = 0
        loop = asyncio.get_running_loop()
        deadline = loop.time() + milliseconds(timeout) / 1_000
        ended: set[str] = set()
        try:
            async with asyncio.timeout_at(deadline), running(self._app, self._store, self._failing) as worker:
                while max_jobs is None or performed < max_jobs:
                    job_id = self._next(queue, with_scheduled=with_scheduled, with_retries=with_retries)
                    if job_id is None:
                        break
                    await worker.run(job_id)
                    ended.add(job_id)
                    performed += 1
                    if loop.time() > deadline:  # the attempt that was cut off has taken the cancellation for its own
                        raise TimeoutError
        except TimeoutError:
            raise AssertionError(
                f"drain isn't done after {timeout}, with {performed} attempts: does a job push itself again and again?"
            ) from None
        left = [self._store.get(job_id) for job_id in ended]
        failed = sum(held.waits in {"retryable", "discarded"} for held in left)
        return Drained(performed, sum(map(_completed, left)), failed)

    def drain_sync(
        self,
        queue: str | None = None,
        *,
        max_jobs: int | None = None,
        timeout: Duration = "30s",
        with_scheduled: bool = False,
        with_retries: bool = True,
    ) -> Drained:
        """Run the jobs that are available, as `drain` does, for tests without an event loop.

        Args:
            queue: The queue. None means all queues.
            max_jobs: How many attempts to run at most. None means any number.
            timeout: How long this may take, in seconds or as `"30s"`.
            with_scheduled: Whether scheduled jobs run, too, without waiting.
            with_retries: Whether failed jobs are tried again.

        Returns:
            The number of attempts, and how the jobs ended.

        Raises:
            AssertionError: It takes longer than `timeout`.
        """
        drained = self.drain(
            queue, max_jobs=max_jobs, timeout=timeout, with_scheduled=with_scheduled, with_retries=with_retries
        )
        return _portal.call(drained)

    def _next(self, queue: str | None, *, with_scheduled: bool, with_retries: bool) -> str | None:
        self._come_due()
        waiting = {"available"} | ({"scheduled"} if with_scheduled else set()) | ({"retryable"} if with_retries else set())
        jobs = [
            held.job
            for held in self._store.all()
            if held.waits in waiting and queue in {None, held.job.queue} and held.job.type in self._app.definitions
        ]
        if not jobs:
            return None
        # Those that needn't wait go first; max takes the oldest of equals.
        first = max(jobs, key=lambda job: (job.state == "available", job.priority))
        if first.state != "available":
            self._store.make_available(first.id)
        return first.id

    async def _pushed(self, jobs: list[Job]) -> None:
        if not self._inline:
            return
        for job in jobs:
            if job.type in self._app.definitions:
                await self._run_inline(job)

    async def _run_inline(self, job: Job) -> None:
        if job.state != "available":  # delays aren't waited for (ojs-testing §5.2)
            self._store.make_available(job.id)
        async with running(self._app, self._store, self._failing) as worker:
            left = await worker.run(job.id)
            if left.state in {"retryable", "discarded"}:
                if worker.raised is not None:
                    raise worker.raised
                said = left.error.message if left.error is not None else ""
                raise JobFailed(f"job {job.id} ({job.type}) failed: {said}", left.error)

    def _failing(self, job_type: str) -> BaseException | None:
        planned = self._to_fail[job_type]
        if not planned:
            return None
        error, times = planned[0]
        if times == 1:
            planned.popleft()
        elif times != _EVER:
            planned[0] = (error, times - 1)
        return error

    def _trouble(self) -> OjsError | None:
        return self._push_fails.popleft() if self._push_fails else None

    def _come_due(self) -> None:
        self._store.come_due()

    # What assertions say

    def _wanted(self, what: What, args: tuple[Any, ...], kwargs: dict[str, Any], **options: Any) -> Wanted:
        return wanted(self._app.definitions, what, args, kwargs, **options)

    def _asserted(self, meant: Wanted, fits: Callable[[Held], bool], word: str, count: int | None) -> Job:
        found = [held.job for held in self._store.all() if fits(held) and meant.misfit(held.job) is None]
        if (found and count is None) or (count is not None and len(found) == count and found):
            return found[-1]
        headline = f"no {meant} was {word}" if count is None else f"{len(found)} of {meant} were {word}, not {count}"
        raise AssertionError(f"{headline}. Enqueued were:\n{self._listing(meant)}")

    def _refuted(self, meant: Wanted, fits: Callable[[Held], bool], word: str) -> None:
        found = [held for held in self._store.all() if fits(held) and meant.misfit(held.job) is None]
        if found:
            raise AssertionError(f"{len(found)} of {meant} were {word}, not none. Enqueued were:\n{self._listing(meant)}")

    def _listing(self, meant: Wanted) -> str:
        return listing([held.job for held in self._store.all()], meant, self._app.definitions)


@contextmanager
def fake(app: App) -> Iterator[Fake]:
    """Keep an app's pushes in memory for the length of a `with` block. They run when the test calls `drain`.

    Args:
        app: The app.

    Returns:
        The jobs.
    """
    yield from _put_in_place(app, Fake(app, inline=False))


@contextmanager
def inline(app: App) -> Iterator[Fake]:
    """Run each push of an app at once for the length of a `with` block. The push raises what the handler raises.

    Args:
        app: The app.

    Returns:
        The jobs.
    """
    yield from _put_in_place(app, Fake(app, inline=True))


def _put_in_place(app: App, jobs: Fake) -> Iterator[Fake]:
    url = f"http://test-{next(_numbers)}.invalid"  # a name that no server has (RFC 2606)
    stand_ins[url] = lambda: jobs._inside(url)
    try:
        with app.moved(url):
            yield jobs
    finally:
        del stand_ins[url]


def _performed(held: Held) -> bool:
    return held.performed > 0


def _completed(held: Held) -> bool:
    return held.job.state == "completed"


def _has_failed(held: Held) -> bool:
    return held.job.state in {"retryable", "discarded"} and held.failed


def _made(kind: type[OjsError]) -> OjsError:
    if issubclass(kind, UnavailableError):
        return UnavailableError("no server answers: the test has said so")
    if issubclass(kind, QueueFullError):
        return QueueFullError("the queue is full: the test has said so", code="queue_full", status=429)
    if issubclass(kind, DuplicateError):
        return DuplicateError("there is such a job: the test has said so", code="duplicate", status=409)
    raise TypeError(f"say how {kind.__name__} is: give the error itself, not its class")
