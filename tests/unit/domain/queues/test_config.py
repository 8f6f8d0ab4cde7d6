from __future__ import annotations

import pytest
from msgspec import Raw
from msgspec.structs import replace

from ojs_engine.base.errors import OjsError
from ojs_engine.domain.job import SYSTEM_RETRY, Job, Retention, Retry, State
from ojs_engine.domain.queues.admission import QueueSettings, admitted
from ojs_engine.domain.queues.config import NOT_SET, QueueConfig, layered
from ojs_engine.domain.queues.record import QueueRecord, configured, created, deleted, draining, paused, resumed
from ojs_engine.domain.transitions import Moment
from ojs_engine.domain.transitions.retention import DEAD_LETTER_S, RETENTION_S, TOMBSTONE_S, retention_s
from support.tables import each

NOW = Moment(1_000, "op1")
LATER = Moment(2_000, "op2")


def draft(**members: object) -> Job:
    return replace(Job(id="j", type="mail.send", args=Raw(b"[]"), state=State.AVAILABLE, queue="mail"), **members)


def test_an_upper_layer_wins_member_by_member() -> None:
    lower = QueueConfig(max_size=10, default_timeout_ms=5, retention=Retention(completed_s=7200, discarded_s=9000))
    upper = QueueConfig(max_size=20, retention=Retention(completed_s=3700))
    both = layered(lower, upper)
    assert both.max_size == 20
    assert both.default_timeout_ms == 5
    assert both.retention == Retention(completed_s=3700, discarded_s=9000)
    assert layered(lower, NOT_SET) == lower


def test_a_job_gets_what_it_leaves_to_its_queue() -> None:
    config = QueueConfig(
        default_timeout_ms=60_000,
        visibility_timeout_ms=30_000,
        default_retry=Retry(max_attempts=7),
        retention=Retention(completed_s=86_400),
    )
    job = admitted(draft(), QueueSettings("active", config))
    assert (job.timeout_ms, job.visibility_timeout_ms, job.retry.max_attempts) == (60_000, 30_000, 7)
    assert job.retention == Retention(completed_s=86_400)


def test_what_a_job_asks_for_itself_outweighs_its_queue() -> None:
    config = QueueConfig(default_timeout_ms=60_000, default_retry=Retry(max_attempts=7))
    asked = draft(timeout_ms=1_000, retry=Retry())  # equal to the system's policy, but asked for
    job = admitted(asked, QueueSettings("active", config))
    assert job.timeout_ms == 1_000
    assert job.retry == SYSTEM_RETRY
    assert admitted(asked, QueueSettings("active", NOT_SET)) is asked


@pytest.mark.parametrize(
    ("patterns", "allowed"),
    [(("*",), True), (("mail.*",), True), (("mail.send",), True), (("mail",), False), (("sms.*",), False), ((), False)],
)
def test_only_allowed_types_are_taken(patterns: tuple[str, ...], allowed: bool) -> None:
    settings = QueueSettings("active", QueueConfig(allowed_job_types=patterns))
    if allowed:
        assert admitted(draft(), settings).type == "mail.send"
    else:
        with pytest.raises(OjsError, match="takes no jobs") as caught:
            admitted(draft(), settings)
        assert caught.value.code == "job_type_not_allowed"


def test_a_paused_queue_takes_jobs_unless_it_is_strict_and_a_draining_one_never_does() -> None:
    assert admitted(draft(), QueueSettings("paused", NOT_SET)).queue == "mail"
    with pytest.raises(OjsError, match="paused") as caught:
        admitted(draft(), QueueSettings("paused", QueueConfig(strict_pause=True)))
    assert caught.value.code == "queue_paused"
    with pytest.raises(OjsError, match="draining") as caught:
        admitted(draft(), QueueSettings("draining", NOT_SET))
    assert caught.value.code == "queue_draining"


@each(
    ("state", "dead", "asked", "seconds"),
    [
        (State.COMPLETED, False, Retention(completed_s=7_200), 7_200),
        (State.COMPLETED, False, Retention(completed_s=60), TOMBSTONE_S),
        (State.COMPLETED, False, Retention(discarded_s=7_200), RETENTION_S[State.COMPLETED]),
        (State.CANCELLED, False, Retention(cancelled_s=7_200), 7_200),
        (State.DISCARDED, False, Retention(discarded_s=7_200), 7_200),
        (State.DISCARDED, True, Retention(discarded_s=7_200), DEAD_LETTER_S),
        (State.DISCARDED, True, Retention(dead_letter_s=9_000), 9_000),
        (State.DISCARDED, True, None, DEAD_LETTER_S),
    ],
)
def test_a_finished_job_stays_as_long_as_its_queue_said(
    state: State, dead: bool, asked: Retention | None, seconds: int
) -> None:
    assert retention_s(draft(state=state, dead_letter=dead, retention=asked)) == seconds


def test_a_queue_is_created_once_and_stays_paused_if_it_was() -> None:
    halted = paused(None, "mail", NOW)
    assert halted is not None
    assert (halted.state, halted.paused_at, halted.explicit, halted.held) == ("paused", 1_000, False, True)
    assert paused(halted, "mail", LATER) is None
    made = created(halted, "mail", QueueConfig(max_size=3), LATER)
    assert (made.state, made.config.max_size, made.created_at, made.updated_at, made.op) == ("paused", 3, 1_000, 2_000, "op2")
    with pytest.raises(OjsError, match="exists") as caught:
        created(made, "mail", NOT_SET, LATER)
    assert caught.value.info.status == 409


def test_a_queue_goes_on_after_a_pause_and_after_draining() -> None:
    record = QueueRecord(name="mail", state="draining")
    assert draining(record, "mail", NOW) is None
    going = resumed(record, "mail", NOW)
    assert going is not None
    assert (going.state, going.resumed_at) == ("active", 1_000)
    assert resumed(going, "mail", NOW) is None
    assert resumed(None, "mail", NOW) is None


def test_a_deleted_queue_leaves_its_configuration_behind_and_can_be_made_again() -> None:
    gone = deleted(configured(None, "mail", QueueConfig(max_size=3), NOW), LATER)
    assert (gone.state, gone.config, gone.held) == ("deleted", NOT_SET, False)
    again = created(gone, "mail", QueueConfig(max_size=5), LATER)
    assert (again.state, again.created_at, again.config.max_size) == ("active", 2_000, 5)
