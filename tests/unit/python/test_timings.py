"""What clients, workers and servers wait for each other: the longer of two waits is not in the same program."""

from __future__ import annotations

import inspect

import pytest

from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_engine.domain.transitions.deadlines import WorkerTimes
from ojs_gateway.context import GatewayTimings
from ojs_nats._timings import HttpTimings, TransportTimings
from ojs_nats.testing import _server
from ojs_nats.worker import Worker
from ojs_nats.worker._timings import WorkerTimings
from ojs_runtime.stopping import StopTimings


def test_a_client_follows_a_stream_for_longer_than_a_gateway_is_silent() -> None:
    assert GatewayTimings().keep_alive_s < HttpTimings().read_s


def test_a_gateway_keeps_a_question_for_as_long_as_a_client_asks_it_to() -> None:
    assert TransportTimings().ask_s <= DEFAULT_LIMITS.max_result_wait_s


def test_a_worker_that_one_heartbeat_of_fails_is_not_taken_for_dead() -> None:
    between_s = inspect.signature(Worker).parameters["heartbeat_interval"].default
    assert 2 * between_s + WorkerTimings().beat_again_s < WorkerTimes().dead_ms / 1_000


def test_a_server_for_tests_has_the_time_to_stop() -> None:
    assert StopTimings().alone_s < _server._STOP_S


def test_a_worker_that_had_no_time_to_say_goodbye_is_refused() -> None:
    with pytest.raises(ValueError, match="ending_s is longer than closing_s: the worker would be cut off"):
        WorkerTimings(closing_s=6.0)
