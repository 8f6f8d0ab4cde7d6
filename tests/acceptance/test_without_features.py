"""The whole system in a checkout from which a feature was deleted."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.system import System
from support.waiting import until
from support.without import NAMES, without

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", [*NAMES, "all"])
def test_a_system_without_a_feature_runs_jobs_and_lists_them(tmp_path: Path, name: str) -> None:
    with System.started(tmp_path, "--together", program=(*without(name), "dev")) as system:
        pushed = system.push("email.send", queue="plain")
        [fetched] = system.fetch("plain")
        assert fetched["id"] == pushed["id"]
        system.call("POST", "/workers/ack", {"job_id": pushed["id"], "worker_id": "w1"})

        def listed() -> bool:
            answer = system.call("GET", "/jobs?state=completed")
            return [job["id"] for job in answer["jobs"]] == [pushed["id"]]

        until(listed)
        checks = system.call("GET", "/admin/findings")["checks"]
        assert name not in checks
