"""Test an application without a server: `pytest test_jobs.py`."""

from __future__ import annotations

import pytest
from jobs import add, app, build_report

from ojs_nats import App
from ojs_nats.testing import Fake


@pytest.fixture
def ojs_app() -> App:
    return app


def test_the_function_alone() -> None:
    assert add(1, 2) == 3


def test_a_report_is_pushed_and_built(ojs_fake: Fake) -> None:
    handle = build_report.push_sync("2026-11")
    ojs_fake.assert_enqueued(build_report, "2026-11")
    ojs_fake.drain_sync()
    assert handle.result() == "the report of 2026-11"
