from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import ClassVar, Final

import pytest

from ojs_engine.domain.transitions.retention import TOMBSTONE_S
from ojs_engine.due.loop import DueLoopTimings
from ojs_engine.jetstream.event_consumer import EventConsumerTimings
from ojs_engine.jetstream.ordered_consumer import OrderedTimings
from ojs_engine.store.store import StoreTimings
from ojs_engine.store.workers.notes import NoteTimings
from ojs_features.backup.restoring import RestoreTimings
from ojs_features.backup.taking import BackupTimings
from ojs_features.crons.ticks import GRACE_MS, LATE_MS
from ojs_features.crons.timings import CronRepairTimings, CronTimings
from ojs_features.limits.blocked_jobs import BlockedJobTimings
from ojs_features.limits.rules import COMING_MS
from ojs_features.unique.timings import LockTimings
from ojs_features.webhooks.deliveries import DeliveryTimings
from ojs_features.workflows.repairs import RepairTimings
from ojs_features.workflows.steps import StepTimings
from ojs_features.workflows.timings import WorkflowTimings
from ojs_index.asking.client import QueryTimings
from ojs_index.safety_net.lost_tokens import LostTokenTimings
from ojs_link.timings import Order, Timings
from ojs_projector.projector import ProjectorTimings
from ojs_runtime.stopping import StopTimings
from script.pages.timings import meanings, reference, structs

ROOT = Path(__file__).parents[4]
PAGE = ROOT / "docs" / "reference" / "timings.md"
CORE = (
    *("access", "base", "due", "jetstream", "store"),
    "operations/rejections.py",
)
IN_STRUCTS = (
    "services",
    "shared/ojs_index",
    "shared/ojs_runtime",
    *(f"shared/ojs_engine/{one}" for one in CORE),
    "shared/ojs_link",
    "shared/ojs_nats",
    *(f"shared/ojs_features/{one}" for one in ("audit", "bulk", "checkpoints", "dead_letters", "history", "maintenance")),
    *(f"shared/ojs_features/{one}" for one in ("pools", "progress")),
    *(f"shared/ojs_features/backup/{one}.py" for one in ("archive", "commands", "release", "restoring", "revival", "taking")),
    *(f"shared/ojs_features/unique/{one}.py" for one in ("left_locks", "locks", "uniqueness")),
    *(f"shared/ojs_features/access/{one}.py" for one in ("gatekeeper", "known_keys", "sessions", "slowing", "store")),
    *(f"shared/ojs_features/webhooks/{one}.py" for one in ("deliverer", "deliveries", "subscriber", "subscriptions")),
    *(f"shared/ojs_features/events/{one}.py" for one in ("following", "hub", "sockets", "stream")),
    *(f"shared/ojs_features/crons/{one}.py" for one in ("store", "loop", "index")),
)
"""Packages whose durations are all in structs."""
NO_DURATIONS = {
    "envelope.py: DURATION_MS",  # a form of the API's description
    "envelope.py: _LONGEST_S",  # a bound of what others may ask for, as is the next
    "jobs.py: _LONGEST_CLOSED_MS",
    "starts.py: SECOND_MS",  # a unit
    "starts.py: WINDOW_S",  # what a number of the API is of
    "hub.py: _FULL_RETRY_S",  # a pause that an answer asks clients for, as are the next two
    "sse.py: _RETRY_MS",
    "allowances.py: _PLACE_AGAIN_S",
    "allowances.py: _BURST_S",  # how much a key may save up, in its own unit
    "sessions.py: LASTS_S",  # stands in what is stored, or sealed
    "fill.py: _NS_A_MS",  # a unit
    "numbers.py: EARLIEST_MS",  # bounds of what clients may send
    "numbers.py: LATEST_MS",
    "numbers.py: LONGEST_MS",
    "numbers.py: BACKLOG_STEP_MS",  # what a number of the API is of
    "subjects.py: AUDIT_DAYS",  # the default of a setting
    "browsers.py: _PREFLIGHT_S",  # what an answer tells browsers, as the next tells clients
    "connections.py: _RETRY_S",
    "service.py: _SWITCH_SECONDS",  # a setting of Python's own
    "_durations.py: LONGEST_MS",  # bounds of what an application may ask for
    "_options.py: _LONGEST_MS",
    "_store.py: _RETENTION_S",  # what a server in memory shows of a result
    "_portal.py: _GOODBYE_S",  # waited by, but in what nobody composes: the loop of calls from plain functions,
    "_portal.py: _LOOK_UP_S",
    "_child.py: _BEGUN_S",  # the process of a handler,
    "_server.py: _LOOK_S",  # and the server for an application's tests
    "_server.py: _READY_S",
    "_server.py: _STOP_S",
    "_server.py: _WAIT_S",
}
"""Constants that nothing waits by, or that are nobody's to give."""
DURATION = re.compile(r"_(MS|S|SECONDS|MINUTES|HOURS|DAYS)$")


def test_the_page_in_the_documentation_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference(), "run: python -m script.pages.timings > docs/reference/timings.md"


def test_every_duration_says_what_it_is() -> None:
    silent = [f"{struct.__name__}.{name}" for struct in structs() for name, said in meanings(struct).items() if not said]
    assert silent == []


def test_the_order_of_what_everybody_has_holds() -> None:
    for struct in structs():
        struct().check(struct.usual)


STORE = StoreTimings()
BETWEEN: Final = {
    "a claim that is being written would count as stuck": (STORE.commits.deadline_s, COMING_MS / 1_000),
    "a lock would be taken from who is writing its job": (STORE.commits.deadline_s, LockTimings().young_ms / 1_000),
    "the tick of a scheduler that dies would count as missed": (CronTimings().tick_s, GRACE_MS / 1_000),
    "a cron entry would be late before its timer is repaired": (CronRepairTimings().grace_ms, LATE_MS),
    "a hint would be judged when its record's tombstone is gone": (BlockedJobTimings().ahead_ms / 1_000, TOMBSTONE_S),
    "a note would be judged when its record's tombstone is gone": (StepTimings().give_up_ms / 1_000, TOMBSTONE_S),
    "a note would be dropped whose record is being written": (STORE.commits.deadline_s, StepTimings().give_up_ms / 1_000),
    "a creation would be taken over while its record is being written": (
        STORE.commits.deadline_s,
        WorkflowTimings().open_ms / 1_000,
    ),
    "workflows would be checked while their jobs have no tokens": (
        LostTokenTimings().grace_ms / 1_000,
        RepairTimings().grace_ms / 1_000,
    ),
    "a token that is being stored would count as lost": (STORE.commits.deadline_s, LostTokenTimings().grace_ms / 1_000),
    "a token of a batch would count as lost": (STORE.writes.hints_s, LostTokenTimings().grace_ms / 1_000),
    "a restore would see no service that runs": (STORE.presence.beat_s, RestoreTimings().beats_s),
    "a backup's consumer would leave while its answer is waited for": (BackupTimings().margin_s, OrderedTimings().idle_s),
    "a note that was withdrawn would come back": (STORE.watches.lost.trace_s, NoteTimings().withdrawn_s),
    "two processes would retry one delivery": (EventConsumerTimings().working_s, DeliveryTimings().ack_wait_s),
    "the batch in hand would be cut off": (DueLoopTimings().stop_s, StopTimings().supervised_s - StopTimings().close_s),
    "an index would wait when nobody waits for it any more": (ProjectorTimings().wait_s, QueryTimings().wait_s),
}
"""What goes wrong unless the first, of one process or function, is at most the second, of another."""


def test_the_order_holds_between_processes_and_the_rules_of_the_domain() -> None:
    assert [wrong for wrong, (shorter, longer) in BETWEEN.items() if shorter > longer] == []


def constants(path: Path) -> list[str]:
    names = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets if isinstance(node, ast.Assign) else []
        names += [one.id for one in targets if isinstance(one, ast.Name) and DURATION.search(one.id)]
    return names


@pytest.mark.parametrize("place", IN_STRUCTS)
def test_no_duration_is_a_constant_beside_the_structs(place: str) -> None:
    """A constant is in nobody's hands, and on no page: it belongs into its component's struct."""
    files = [ROOT / place] if place.endswith(".py") else sorted((ROOT / place).rglob("*.py"))
    assert files
    assert {f"{file.name}: {name}" for file in files for name in constants(file)} <= NO_DURATIONS


class Waits(Timings, frozen=True, kw_only=True):
    lease_ms: int = 2_000
    renewal_s: float = 1.0
    order: ClassVar[Order] = (("renewal_s", "lease_ms", "it would end in between"),)


class Parts(Timings, frozen=True, kw_only=True):
    longest_s: float = 2.0
    waits: Waits = Waits()
    order: ClassVar[Order] = (("waits.lease_ms", "longest_s", "nobody waits longer"),)


def test_the_order_is_asserted_whatever_the_units() -> None:
    assert Waits(renewal_s=2.0).renewal_s == 2.0
    with pytest.raises(ValueError, match=r"Waits: renewal_s is longer than lease_ms: it would end in between"):
        Waits(renewal_s=2.1)
    with pytest.raises(ValueError, match=r"Parts: waits.lease_ms is longer than longest_s: nobody waits longer"):
        Parts(waits=Waits(lease_ms=2_001))
