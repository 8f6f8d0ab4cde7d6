from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from ojs_engine.base.errors import OjsError
from ojs_engine.jetstream.subjects import ANY, LANES, REST, StoreConfig, Wildcard, handler_lane
from ojs_features.crons.subjects import cron_subject, timer_subject
from ojs_features.limits.subjects import Subjects as SubjectsOfLimits
from ojs_features.webhooks.subjects import Subjects
from ojs_features.workflows.subjects import Subjects as SubjectsOfWorkflows
from support.tables import each

CONFIG = StoreConfig()
WORKFLOWS = SubjectsOfWorkflows(CONFIG)
NAMED: list[Callable[[str], str]] = [
    lambda name: CONFIG.record("worker", name),
    CONFIG.job,
    lambda name: CONFIG.timer(name, "op"),
    lambda name: CONFIG.timer("id", name),
    partial(cron_subject, CONFIG),
    lambda name: timer_subject(CONFIG, name, "op"),
    lambda name: CONFIG.due("scheduler", name),
    lambda name: CONFIG.record("unique", name),
    lambda name: CONFIG.record("progress", name),
    WORKFLOWS.workflow,
    lambda name: WORKFLOWS.definition(name, "op", "shape"),
    lambda name: WORKFLOWS.definition("id", name, "shape"),
    lambda name: WORKFLOWS.step_result(name, "op", 1),
    lambda name: WORKFLOWS.step_result("id", name, 1),
    lambda name: WORKFLOWS.workflow_timer(name, "op"),
    lambda name: CONFIG.note("workflow", "workflow", name),
    lambda name: CONFIG.note("workflow", name, "job"),
    CONFIG.queue,
    lambda name: CONFIG.ready(name, 0),
    CONFIG.ready_of_queue,
    lambda name: CONFIG.seat(name, 1),
    CONFIG.seat_of_queue,
    Subjects(CONFIG).webhook,
    Subjects(CONFIG).target,
    Subjects(CONFIG).consumer,
    lambda name: Subjects(CONFIG).delivery(name, "id"),
    lambda name: Subjects(CONFIG).delivery("id", name),
    lambda name: Subjects(CONFIG).delivery_timer(name, "id"),
    lambda name: Subjects(CONFIG).delivery_timer("id", name),
    lambda name: Subjects(CONFIG).delivery_due(name, "id"),
    lambda name: Subjects(CONFIG).delivery_due("id", name),
    SubjectsOfLimits(CONFIG).limit,
    lambda name: CONFIG.note("limit", "key.a", name),
    lambda name: SubjectsOfLimits(CONFIG).timer(name, "op"),
    lambda name: SubjectsOfLimits(CONFIG).hold("key.a", 0, name, front=False),
    SubjectsOfLimits(CONFIG).hold_of,
    CONFIG.wake_for_room,
    CONFIG.wake_of_queue,
    lambda name: CONFIG.event("job.completed", name, "id"),
    lambda name: CONFIG.event("job.completed", "queue", name),
    lambda name: CONFIG.live_event("job.heartbeat", "queue", name),
]


@each("subject", NAMED)
def test_no_name_from_outside_addresses_more_than_its_own_subject(subject: Callable[[str], str]) -> None:
    assert "name" in subject("name")
    for name in ("*", ">", "a.*", "a.>", "a b", "a\tb", "x\r\nPUB y 0", "a\x00", "\x7f"):
        with pytest.raises(OjsError) as refused:
            subject(name)
        assert refused.value.code == "invalid_request"


def test_code_may_ask_for_many() -> None:
    assert CONFIG.job(REST) == "$KV.ojs.job.>"
    assert CONFIG.due("reaper", ANY) == "ojs.due.reaper.*"
    assert CONFIG.record("service", Wildcard("gateway.*")) == "$KV.ojs.service.gateway.*"
    assert WORKFLOWS.step_result("w", "", REST) == "$KV.ojs.wfres.w.>"
    assert WORKFLOWS.step_result("w", "op", ANY) == "$KV.ojs.wfres.w.op.*"


@pytest.mark.parametrize(
    ("patterns", "subjects"),
    [
        (["job.completed", "job.failed"], ["ojs.events.job.completed.*.*", "ojs.events.job.failed.*.*"]),
        (["job.completed", "job.*", "workflow.failed"], ["ojs.events.job.>", "ojs.events.workflow.failed.*.*"]),
        (["job.completed", "job.completed"], ["ojs.events.job.completed.*.*"]),
        (["job.*", "*"], ["ojs.events.>"]),
        (["job.a", "job.a.*"], ["ojs.events.job.>"]),
        (["job", "job.a.b.*"], ["ojs.events.job.>"]),
        (["rate_limit.dropped.*", "worker.*"], ["ojs.events.rate_limit.>", "ojs.events.worker.>"]),
    ],
)
def test_no_event_is_under_two_of_a_consumers_subjects(patterns: list[str], subjects: list[str]) -> None:
    assert CONFIG.events_of_types(patterns) == subjects


@pytest.mark.parametrize("queue", ["mail", "mail-100", "mail.100", "q" * 120, "q" * 190])
@pytest.mark.parametrize("lane", [*LANES, handler_lane("email.send", "1.2"), handler_lane("t" * 200, None)])
@pytest.mark.parametrize("priority", [-100, 0, 100])
def test_a_queues_consumers_are_found_by_their_names(queue: str, lane: str, priority: int) -> None:
    config = StoreConfig()
    name = config.ready_consumer(config.ready(queue, priority, lane))
    others = [config.ready_consumer(config.ready(other, 0)) for other in ("mai", "mail2", "mail-050", "r" * 190)]
    assert config.consumers_of(queue, [*others, name]) == [name]
