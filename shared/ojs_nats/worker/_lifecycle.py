"""When a worker stops (ojs-worker-protocol §2.3): a table of its states, and what moves it."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec


class WorkerState(StrEnum):
    """`QUIET` fetches nothing and works on; `TERMINATE` also ends, when its jobs have or the grace period has."""

    RUNNING = "running"
    QUIET = "quiet"
    TERMINATE = "terminate"


class Vitals(msgspec.Struct, frozen=True):
    """Signs of how a worker is now. `loop_turns` is whether its loop was let in lately, `fetches` whether its last
    fetch was answered; `silent_s` how long ago the server answered its last heartbeat, `every_s` how often one is
    sent.
    """

    state: WorkerState
    active: int
    concurrency: int
    loop_turns: bool
    fetches: bool
    silent_s: float
    every_s: float

    @property
    def ready(self) -> bool:
        heard = self.fetches and self.silent_s < 3 * self.every_s
        return self.state is WorkerState.RUNNING and self.loop_turns and heard


class Trigger(StrEnum):
    """A signal, or what the server said in answer to a heartbeat."""

    SIGTERM = "SIGTERM"
    SIGINT = "SIGINT"
    SIGTSTP = "SIGTSTP"
    SIGCONT = "SIGCONT"
    TOLD_RUNNING = "running"
    TOLD_QUIET = "quiet"
    TOLD_TERMINATE = "terminate"


_MOVES: Final = {
    Trigger.SIGTERM: {WorkerState.RUNNING: WorkerState.TERMINATE, WorkerState.QUIET: WorkerState.TERMINATE},
    Trigger.SIGINT: {WorkerState.RUNNING: WorkerState.TERMINATE, WorkerState.QUIET: WorkerState.TERMINATE},
    Trigger.SIGTSTP: {WorkerState.RUNNING: WorkerState.QUIET},
    Trigger.SIGCONT: {WorkerState.QUIET: WorkerState.RUNNING},
    Trigger.TOLD_RUNNING: {WorkerState.QUIET: WorkerState.RUNNING},
    Trigger.TOLD_QUIET: {WorkerState.RUNNING: WorkerState.QUIET},
    Trigger.TOLD_TERMINATE: {WorkerState.RUNNING: WorkerState.TERMINATE, WorkerState.QUIET: WorkerState.TERMINATE},
}


def after(state: WorkerState, trigger: Trigger) -> WorkerState:
    """The state that follows; one that there is no way to isn't entered."""
    return _MOVES[trigger].get(state, state)
