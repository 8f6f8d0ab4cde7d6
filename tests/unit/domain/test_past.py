"""What a job's log says of each of its entries, whoever asks."""

from __future__ import annotations

from ojs_engine.domain.past import Logged, birth_of, life_of
from ojs_engine.domain.transitions import Failure, claim, due, move, nack, push
from ojs_engine.domain.transitions.result import Transition
from ojs_features.statistics.activity import Activity, count
from ojs_index.sqlite.starts import Start, starts_of
from unit.domain.transitions.samples import ANYONE, SECOND, T0, at, draft


def test_a_moved_job_waits_in_its_queue_since_the_move_for_everybody_who_counts() -> None:
    waiting = push(draft(queue="slow"), at()).job
    moved = move(waiting, "quick", at(4 * SECOND)).job
    job = claim(moved, "w", None, at(5 * SECOND)).job
    counted = Activity()
    count(job, 0, lambda queue, _: counted if queue == "quick" else None)
    assert Logged.of(job, job.transitions[-1]).available_at == T0 + 4 * SECOND
    assert counted.wait_ms == SECOND
    assert starts_of(job, 0) == [Start("quick", T0 + 5 * SECOND, SECOND)]


def test_every_start_is_known_with_its_wait_the_last_one_first_and_none_twice() -> None:
    job = claim(push(draft(queue="mail"), at()).job, "w", None, at(2 * SECOND)).job
    job = nack(job, Failure(message="m", code="c", type="T"), ANYONE, at(3 * SECOND)).job
    promoted = due(job, at(5 * SECOND))
    assert isinstance(promoted, Transition)
    job = claim(promoted.job, "w", None, at(6 * SECOND)).job
    assert starts_of(job, 0) == [Start("mail", T0 + 6 * SECOND, SECOND), Start("mail", T0 + 2 * SECOND, 2 * SECOND)]
    assert starts_of(job, T0 + 2 * SECOND) == [Start("mail", T0 + 6 * SECOND, SECOND)]


def test_a_log_without_entries_has_no_life() -> None:
    assert (life_of(()), birth_of(())) == ((), 0)
