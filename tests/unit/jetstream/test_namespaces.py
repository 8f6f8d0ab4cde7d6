"""Names of two systems in one account of NATS: each is told from every other's by its namespace alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ojs_engine.jetstream.subjects import DEFAULT_NAMESPACE, StoreConfig, checked_namespace
from ojs_features.crons.subjects import timer_subject
from ojs_features.limits.subjects import Subjects as SubjectsOfLimits
from ojs_features.webhooks.subjects import Subjects
from ojs_features.workflows.subjects import Subjects as SubjectsOfWorkflows
from support.tables import each

_NAMESPACES = st.from_regex(r"[a-z][a-z0-9-]{0,31}", fullmatch=True).filter(lambda name: name not in {"kv", "obj"})
_ROOT = Path(__file__).parents[3]
_SPELT = re.compile(r"""["']ojs\.(?:timer|due|step|ready|hold|wake|events|live|control|query|api)\b""")


def subjects(config: StoreConfig) -> set[str]:
    """Subjects outside of the bucket, of every kind that there is."""
    return {
        *config.hints,
        config.timer("id", "op"),
        timer_subject(config, "id", "op"),
        config.left_by_batches,
        SubjectsOfWorkflows(config).workflow_timer("id", "op"),
        SubjectsOfLimits(config).timer("key.a", "op"),
        Subjects(config).delivery_timer("id", "other"),
        Subjects(config).delivery_due("id", "other"),
        config.due("reaper", "id"),
        config.notes("workflow"),
        config.note("workflow", "id", "other"),
        config.notes("limit"),
        config.note("limit", "key.a", "id"),
        config.ready("a.b", 0),
        config.ready("a.b", 0, "front"),
        config.lanes_beside("a.b", 0),
        config.ready_of_queue("a.b"),
        config.tokens_of_queue("a.b"),
        config.seat("a.b", 1),
        config.seat_of_queue("a.b"),
        SubjectsOfLimits(config).hold("key.a", 0, "a.b", front=True),
        SubjectsOfLimits(config).hold_of("key.a"),
        config.held_of("a.b"),
        SubjectsOfLimits(config).ready_of_hold(SubjectsOfLimits(config).hold("key.a", 0, "a.b", front=False)),
        config.wake_for_room("a"),
        config.wake_of_queue("a.b"),
        str(config.ready_of_wake(config.wake_of_queue("a.b").replace(">", "100"))),
        config.events,
        *config.events_of_types(["job.completed", "worker.*"]),
        config.event("job.completed", "a.b", "id"),
        config.live_events,
        config.live_event("job.heartbeat", "a.b", "id"),
        config.events_stored,
        config.query("jobs"),
        config.query("jobs", building=True),
        config.reset,
        config.reset_answers,
        config.api("push", "a.b"),
    }


def stored_subjects(config: StoreConfig) -> set[str]:
    return {subject for stream in config.streams() for subject in stream["subjects"]}


@given(_NAMESPACES)
def test_every_name_begins_with_the_namespace(name: str) -> None:
    config = StoreConfig(namespace=name)
    assert {subject.split(".")[0] for subject in subjects(config)} == {name}
    assert config.job("id") == f"$KV.{name}.job.id"
    streams = [str(stream["name"]) for stream in config.streams()]
    assert streams == [f"KV_{name}", f"{name.upper()}_READY", f"{name.upper()}_EVENTS", f"{name.upper()}_AUDIT"]
    assert stored_subjects(config) - set(config.hints) == {
        f"$KV.{name}.>",
        *(f"{name}.{kind}.>" for kind in ("ready", "hold", "events", "audit")),
    }
    assert config.streams()[1]["republish"] == {"src": f"{name}.ready.>", "dest": f"{name}.wake.>", "headers_only": True}


@given(_NAMESPACES, st.sampled_from(["-b", "-", "0", "-ready", "-events"]), _NAMESPACES)
def test_no_two_namespaces_share_a_stream_or_a_subject(one: str, suffix: str, unrelated: str) -> None:
    for other in (f"{one[: 32 - len(suffix)]}{suffix}", unrelated):
        assume(one != other)
        configs = StoreConfig(namespace=one), StoreConfig(namespace=other)
        mine, theirs = ({str(stream["name"]).casefold() for stream in config.streams()} for config in configs)
        assert not mine & theirs
        # A wildcard of one can only match the other's if their first tokens, or those behind $KV, are the same.
        roots, others = ({subject.replace("$KV.", "$KV-").split(".")[0] for subject in stored_subjects(c)} for c in configs)
        assert not roots & others


@each("name", ["", "A", "OJS", "a.b", "a_b", "1a", "-a", "$kv", "_inbox", "*", ">", "a b", "ä", "a\n", "a" * 33, "kv", "obj"])
def test_what_is_no_namespace_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"like ojs|choose another"):
        checked_namespace(name)
    with pytest.raises(ValueError, match=r"like ojs|choose another"):
        StoreConfig(namespace=name)


def test_without_one_all_names_are_what_they_have_always_been() -> None:
    config = StoreConfig()
    assert config.namespace == DEFAULT_NAMESPACE == "ojs"
    assert [stream["name"] for stream in config.streams()] == ["KV_ojs", "OJS_READY", "OJS_EVENTS", "OJS_AUDIT"]
    assert [stream["subjects"] for stream in config.streams()] == [
        ["$KV.ojs.>", "ojs.timer.>", "ojs.due.>", "ojs.step.>"],
        ["ojs.ready.>", "ojs.hold.>"],
        ["ojs.events.>"],
        ["ojs.audit.>"],
    ]
    ready = config.ready("a.b", 0, "front")
    assert ready == "ojs.ready.a_b.100.front"
    assert config.ready_consumer(ready) == "ready-a_b-100-front"
    assert config.ready_of_wake("ojs.wake.a_b.100.front") == ready
    assert config.live_event("job.heartbeat", "a.b", "id") == "ojs.live.job.heartbeat.a_b.id"
    assert config.query("jobs", building=True) == "ojs.query.building.jobs"
    assert (config.reset, config.reset_answers) == ("ojs.control.reset", "ojs.control.answer.")
    assert config.api("push", "a.b") == "ojs.api.push.a.b"


def test_the_beginning_of_subjects_is_spelt_in_one_place() -> None:
    spelt = [
        f"{file.relative_to(_ROOT)}:{number}: {line.strip()}"
        for folder in ("shared", "services")
        for file in sorted((_ROOT / folder).rglob("*.py"))
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if _SPELT.search(line)
    ]
    assert spelt == [], "derive it from StoreConfig.namespace, in the client from the address"
