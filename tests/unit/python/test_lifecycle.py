"""Every row of the table of worker states (ojs-worker-protocol §2.3), and that there is no other way."""

from __future__ import annotations

import itertools

from ojs_nats.worker._lifecycle import Trigger, WorkerState, after
from support.tables import each

RUNNING, QUIET, TERMINATE = WorkerState.RUNNING, WorkerState.QUIET, WorkerState.TERMINATE

TABLE = {
    (RUNNING, Trigger.TOLD_QUIET): QUIET,
    (RUNNING, Trigger.SIGTSTP): QUIET,
    (RUNNING, Trigger.TOLD_TERMINATE): TERMINATE,
    (RUNNING, Trigger.SIGTERM): TERMINATE,
    (RUNNING, Trigger.SIGINT): TERMINATE,
    (QUIET, Trigger.TOLD_TERMINATE): TERMINATE,
    (QUIET, Trigger.SIGTERM): TERMINATE,
    (QUIET, Trigger.SIGINT): TERMINATE,
    (QUIET, Trigger.SIGCONT): RUNNING,
    (QUIET, Trigger.TOLD_RUNNING): RUNNING,
}


@each(("state", "trigger"), list(itertools.product(WorkerState, Trigger)))
def test_where_a_trigger_leads(state: WorkerState, trigger: Trigger) -> None:
    assert after(state, trigger) is TABLE.get((state, trigger), state)
