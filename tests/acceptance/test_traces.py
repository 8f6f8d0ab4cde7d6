"""Traces of the running system, as a collector receives them."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.collector import Collector, Received
from support.nats import NatsServer
from support.system import Api, Processes, Services, System, environment, send
from support.waiting import until

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
QUEUE = {"queue": "traced"}


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with Collector.started() as collector:
        yield collector


@pytest.fixture(scope="module")
def traced(collector: Collector, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """A system that exports to the collector, told by OpenTelemetry's own variable."""
    env = environment(OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, OTEL_BSP_SCHEDULE_DELAY="50")
    with Services.started(tmp_path_factory.mktemp("traced"), "gateway", "projector", env=env) as system:
        yield system


def post(system: Api, path: str, body: dict[str, Any], **headers: str) -> Any:
    request = urllib.request.Request(
        f"{system.url}/ojs/v1{path}", json.dumps(body).encode(), {"Content-Type": "application/json", **headers}
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.loads(response.read())


def spans_of(collector: Collector, job_id: str, number: int) -> dict[str, Received]:
    """The spans of a job by their names, once there are so many."""

    def found() -> list[Received]:
        spans = [span for span in collector.spans if span.attributes.get("ojs.job.id") == job_id]
        return spans if len(spans) >= number else []

    return {span.name: span for span in until(found)}


def test_a_job_can_be_followed_from_its_push_to_its_ack(traced: Services, collector: Collector) -> None:
    job = post(traced, "/jobs", {"type": "test.traced", "args": [], "options": QUEUE}, traceparent=f"00-{TRACE}-{SPAN}-01")[
        "job"
    ]
    fetched = post(traced, "/workers/fetch", {"queues": ["traced"], "worker_id": "w"})["jobs"][0]
    assert fetched["meta"] == job["meta"]
    post(traced, "/workers/ack", {"job_id": job["id"], "worker_id": "w"}, traceparent=f"00-{'a' * 32}-{SPAN}-01")

    spans = spans_of(collector, job["id"], 3)
    assert set(spans) == {"ojs.enqueue test.traced", "ojs.fetch test.traced", "ojs.ack test.traced"}
    assert {span.service for span in spans.values()} == {"ojs-nats-gateway"}
    enqueue, fetch, ack = (spans[f"ojs.{step} test.traced"] for step in ("enqueue", "fetch", "ack"))
    assert (enqueue.trace, enqueue.parent) == (TRACE, SPAN)
    assert job["meta"]["traceparent"].split("-")[1:3] == [TRACE, enqueue.span]
    assert fetch.links == ack.links == [(TRACE, enqueue.span)]
    assert (fetch.parent, ack.trace, ack.parent) == ("", "a" * 32, SPAN)
    assert ack.attributes["ojs.job.state"] == "completed"
    assert {fetch.attributes["ojs.worker.id"], ack.attributes["ojs.worker.id"]} == {"w"}


def test_events_of_a_traced_job_name_its_trace(traced: Services) -> None:
    job = post(traced, "/jobs", {"type": "test.traced", "args": [], "options": {"queue": "traced-events"}})["job"]
    events = traced.request("GET", "/ojs/v1/events?queues=traced-events").body["events"]
    assert [event["data"]["trace_id"] for event in events] == [job["meta"]["traceparent"].split("-")[1]]


def test_a_job_keeps_the_context_that_its_client_gave_it(traced: Services, collector: Collector) -> None:
    meta = {"traceparent": f"00-{TRACE}-{SPAN}-01", "tracestate": "vendor=1", "tenant": "acme"}
    job = post(traced, "/jobs", {"type": "test.kept", "args": [], "meta": meta, "options": QUEUE})["job"]
    assert job["meta"] == meta
    assert spans_of(collector, job["id"], 1)["ojs.enqueue test.kept"].parent == SPAN


def test_without_a_collector_nothing_is_added_to_a_job(system: System) -> None:
    job = post(system, "/jobs", {"type": "test.traced", "args": []}, traceparent=f"00-{TRACE}-{SPAN}-01")["job"]
    assert "traceparent" not in job.get("meta", {})


def test_a_collector_that_hangs_delays_neither_jobs_nor_the_stop(tmp_path: Path, nats_server: NatsServer) -> None:
    with Collector.started(hangs=True) as collector:
        processes = Processes(tmp_path / "processes", nats_server.url, env=environment(OTEL_BSP_SCHEDULE_DELAY="50"))
        gateway = processes.start("gateway", "--otlp-endpoint", collector.url)
        try:
            url = f"{gateway.ready()['url']}/ojs/v1/jobs"
            assert send("POST", url, {"type": "test.traced", "args": []}).status == 201
            assert collector.asked.wait(60)
            began = time.monotonic()
            assert send("POST", url, {"type": "test.traced", "args": []}).status == 201
            assert time.monotonic() - began < 20  # the exporter would wait for longer
            assert gateway.stop() == 0
        finally:
            processes.stop()
