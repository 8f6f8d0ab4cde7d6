"""Queues that an operator may have to see to, in the read model."""

from __future__ import annotations

from ojs_engine.domain.job import State
from ojs_index.asking.messages import ConcernsAsk, QueueFacts
from ojs_index.reading.concerns import concerns
from ojs_index.sqlite.model import Model
from unit.index.reading.test_dispatches import CLAIMED, PUSHED, lived
from unit.index.samples import NOW, fresh, seen

MINUTE = 60_000


def test_waiting_paused_and_failing_queues_are_told_with_their_figures() -> None:
    model = fresh()
    failed = ("failed", State.DISCARDED, 2_000)
    model.apply([
        seen(1, lived(PUSHED, id="a", queue="waits")),
        seen(2, lived(PUSHED, id="b", queue="held")),
        seen(3, lived(PUSHED, CLAIMED, failed, id="c", queue="fails")),
    ])  # fmt: skip
    found = {queue.name: queue for queue in asked(model, "held", "unknown")}
    assert set(found) == {"waits", "held", "fails"}
    assert (found["waits"].available, found["waits"].oldest_at, found["waits"].served) == (1, NOW, False)
    assert found["held"].available == 1
    assert (found["fails"].completed, found["fails"].failed, found["fails"].last_at) == (0, 1, NOW + 1_000)
    assert found["fails"].served
    assert {queue.name: (queue.failed, queue.served) for queue in asked(model, at=6 * MINUTE)} == {
        "waits": (0, False), "held": (0, False),
    }  # fmt: skip


def asked(model: Model, *paused: str, at: int = 10_000) -> list[QueueFacts]:
    return concerns(model, ConcernsAsk(paused=paused), NOW + at).queues
