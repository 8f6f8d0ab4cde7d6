"""A worker as a process: `ojs-nats worker app.jobs`."""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import signal
import sys
from collections.abc import Sequence
from typing import Final, TypedDict, Unpack

from ojs_nats._app import App
from ojs_nats._durations import Duration
from ojs_nats._errors import Missing, OjsError, Unavailable
from ojs_nats._lookups import new_loop
from ojs_nats._worker.lifecycle import Trigger
from ojs_nats._worker.worker import Worker

_SIGNALS: Final = (
    (signal.SIGTERM, Trigger.SIGTERM),
    (signal.SIGINT, Trigger.SIGINT),
    (signal.SIGTSTP, Trigger.SIGTSTP),
    (signal.SIGCONT, Trigger.SIGCONT),
)


class WorkerOptions(TypedDict, total=False):
    """As those of `Worker`."""

    queues: Sequence[str]
    concurrency: int
    ahead: int
    grace: Duration
    processes: int | None
    health: tuple[str, int] | None


class CannotStart(OjsError):
    """What keeps a worker from starting, in one sentence with the remedy."""


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


def run(names: Sequence[str], **options: Unpack[WorkerOptions]) -> None:
    """Until it is told to stop. Raises CannotStart, and what the modules raise."""
    app = load(names)
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(_serve(app, options))


async def _serve(app: App, options: WorkerOptions) -> None:
    """Run it under the signals of ojs-worker-protocol §9: SIGTERM, SIGTSTP (quiet), SIGCONT (resume), SIGINT (at once)."""
    try:
        worker = Worker(app, **options)
    except (ValueError, Missing) as error:
        raise CannotStart(str(error)) from None
    except OSError as error:
        raise CannotStart(f"the health endpoint {options.get('health')} can't be opened: {error.strerror}") from None
    loop = asyncio.get_running_loop()
    for number, trigger in _SIGNALS:
        loop.add_signal_handler(number, worker.notify, trigger)
    try:
        await worker.run()
    except Unavailable as error:
        raise CannotStart(f"{error}; is the server running, and is OJS_URL its address?") from None
    finally:
        for number, _ in _SIGNALS:
            loop.remove_signal_handler(number)
    if worker.active:  # a handler that doesn't let itself be stopped would keep the process for as long as it likes
        logging.shutdown()
        os._exit(0)
