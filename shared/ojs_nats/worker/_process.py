"""A worker as a process: `ojs-nats worker app.jobs`."""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from typing import Final, TypedDict, Unpack, cast

from ojs_nats._connect import url_of
from ojs_nats._durations import Duration
from ojs_nats._logging import get_logger
from ojs_nats._lookups import Loop
from ojs_nats.app import App
from ojs_nats.errors import MissingDependencyError, OjsError, RefusedError, UnavailableError
from ojs_nats.worker._lifecycle import Trigger
from ojs_nats.worker._timings import WorkerTimings
from ojs_nats.worker._worker import Worker

log = get_logger("ojs_nats.worker.process")

_SIGNALS: Final = (
    (signal.SIGTERM, Trigger.SIGTERM),
    (signal.SIGINT, Trigger.SIGINT),
    (signal.SIGTSTP, Trigger.SIGTSTP),
    (signal.SIGCONT, Trigger.SIGCONT),
)

_SHOWN: Final = 10
"""Types that a refusal names."""


class WorkersLoop(Loop):
    """The loop of a worker's process, in which tasks of handlers run: one that calls `exit()`, or stops the loop, would
    end the worker, and the worker that is given its job next. Whoever awaits such a task meets what it raised.
    """

    goes_on = False
    """Whether there is a worker in it that decides about its end."""

    def stop(self) -> None:
        if self.goes_on:
            log.warning("a handler stops the worker's loop, which goes on")
        else:
            super().stop()

    def run_forever(self) -> None:
        while True:
            try:
                return super().run_forever()
            except (SystemExit, KeyboardInterrupt) as error:
                if not self.goes_on:
                    raise
                log.warning("a task of a handler raised what would end the worker", error=type(error).__name__)


class WorkerOptions(TypedDict, total=False):
    """The options of a `Worker`."""

    queues: Sequence[str]
    concurrency: int
    grace_period: Duration
    processes: int | None
    health: tuple[str, int] | None
    log_payloads: bool
    verbose: bool


class CannotStart(OjsError):
    """A reason that keeps a worker from starting, in one sentence with the remedy."""


def load(names: Sequence[str]) -> App:
    """The app of these modules, which all have to define their jobs on the same one. Raises CannotStart."""
    if os.getcwd() not in sys.path:  # noqa: PTH109
        sys.path.insert(0, os.getcwd())  # noqa: PTH109
    apps: dict[int, App] = {}
    for name in names:
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise  # it is there, and imports something that isn't
            raise CannotStart(f"there is no module {name}: run this in the folder that you would import it from") from None
        found = {id(value): value for value in vars(module).values() if isinstance(value, App)}
        if not found:
            raise CannotStart(f"{name} has no App: write `app = App()` there, or import it from where your jobs are defined")
        apps |= found
    if len(apps) > 1:
        raise CannotStart(f"{' and '.join(names)} have {len(apps)} apps: a worker runs those of one, so share it")
    [app] = apps.values()
    if not app.definitions:
        raise CannotStart(f'the app of {" and ".join(names)} has no jobs: decorate a function with @app.job("a.name")')
    return app


def run(names: Sequence[str], types: Sequence[str] = (), **options: Unpack[WorkerOptions]) -> None:
    """Run the jobs of some types, or of all, until it is to stop. Raises CannotStart, and what the modules raise."""
    try:
        url_of(None)  # what apps without an address take, when their modules are imported
    except ValueError as error:
        raise CannotStart(f"OJS_URL: {error}") from None
    app = load(names)
    _restrict(app, types)
    with asyncio.Runner(loop_factory=WorkersLoop) as runner:
        runner.run(_serve(app, options))


def _restrict(app: App, types: Sequence[str]) -> None:
    """Leave out the jobs of other types; all stay if none is named. Raises CannotStart for a type without a job."""
    for name in types:
        if name not in app.definitions:
            there = _known(app)
            raise CannotStart(f"there is no job of type {name} (--types, OJS_JOB_TYPES): the modules define {there}")
    if types:
        app.definitions = {name: one for name, one in app.definitions.items() if name in types}


def _known(app: App) -> str:
    """Return the types of an app's jobs, the first of them."""
    names = sorted(app.definitions)
    return ", ".join(names[:_SHOWN]) + (" …" if len(names) > _SHOWN else "")


async def _serve(app: App, options: WorkerOptions) -> None:
    """Run it under the signals of ojs-worker-protocol §9: SIGTERM, SIGTSTP (quiet), SIGCONT (resume), SIGINT (at
    once).
    """
    try:
        worker = Worker(app, **options)
    except (ValueError, MissingDependencyError) as error:
        raise CannotStart(str(error)) from None
    except OSError as error:
        raise CannotStart(f"the health endpoint {options.get('health')} can't be opened: {error.strerror}") from None
    loop = cast("WorkersLoop", asyncio.get_running_loop())
    for number, trigger in _SIGNALS:
        loop.add_signal_handler(number, worker.notify, trigger)
    loop.goes_on = True
    try:
        await worker.run()
    except UnavailableError as error:
        raise CannotStart(str(error)) from None
    except RefusedError as error:
        raise CannotStart(f"the server refuses the worker: {error}") from None
    finally:
        loop.goes_on = False
        for number, _ in _SIGNALS:
            loop.remove_signal_handler(number)
    _leave(0.0 if worker.active else WorkerTimings().leave_s)


def _leave(seconds: float) -> None:
    """End the process in so many seconds, if it hasn't ended by itself: a handler that doesn't let itself be
    stopped, or a thread of `asyncio.to_thread`, would keep it for as long as it likes.
    """

    def leave() -> None:
        time.sleep(seconds)
        log.warning("threads go on: the process ends without them")
        logging.shutdown()
        os._exit(0)

    threading.Thread(target=leave, name="ojs-nats-leaving", daemon=True).start()
