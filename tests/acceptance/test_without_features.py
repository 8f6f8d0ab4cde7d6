"""The whole system in a checkout from which a feature was deleted."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ojs_features.all import FEATURES
from support.system import System
from support.waiting import until
from support.without import NAMES, without

pytestmark = pytest.mark.slow

OF_FEATURES: list[tuple[str, str, object]] = [
    ("rate_limit", "limits", {"key": "api", "concurrency": 1}),
    ("schema", "schemas", "urn:ojs:schema:a:v1"),
    ("unique", "unique", {"keys": ["type"]}),
]
"""Members of a job, the features that do what they say, and a value."""
OF_QUEUES: list[tuple[str, str, object]] = [
    ("concurrency", "limits", 1),
    ("rate_limit", "limits", {"limit": 1}),
    ("schema_validation", "schemas", "strict"),
]
"""The same of settings of a queue."""


@pytest.mark.parametrize("name", [*NAMES, "all"])
def test_a_system_without_a_feature_runs_jobs_and_lists_them(tmp_path: Path, name: str) -> None:
    with System.started(tmp_path, "--together", program=(*without(name), "dev")) as system:
        for member, feature, value in OF_FEATURES:
            if name in {feature, "all"}:
                refused = system.call("POST", "/jobs", {"type": "a", "args": [], member: value}, status=422)
                assert refused["error"]["details"]["field"] == member
        for setting, feature, value in OF_QUEUES:
            if name in {feature, "all"}:
                refused = system.call("PUT", "/queues/plain/config", {setting: value}, status=422)
                assert refused["error"]["details"]["field"] == setting
        if name in {"pools", "all"}:
            refused = system.call("POST", "/workers/fetch", {"queues": ["plain"], "pool": "p"}, status=422)
            assert refused["error"]["details"]["field"] == "pool"
        pushed = system.push("email.send", queue="plain")
        [fetched] = system.fetch("plain")
        assert fetched["id"] == pushed["id"]
        system.call("POST", "/workers/ack", {"job_id": pushed["id"], "worker_id": "w1"})

        def listed() -> bool:
            answer = system.call("GET", "/jobs?state=completed")
            return [job["id"] for job in answer["jobs"]] == [pushed["id"]]

        until(listed)
        if name in {"statistics", "all"}:
            system.call("GET", "/admin/stats", status=404)
            assert system.call("GET", "/queues/plain/stats")["stats"]["windows"] == {}
        if name in {"backup", "all"}:
            asked = [*without(name), "backup", str(tmp_path / "backup"), "--nats", system.nats_url]
            told = subprocess.run(asked, capture_output=True, text=True, check=False)
            assert (told.returncode, "has no backups" in told.stderr) == (1, True), told.stderr
        if name in {"findings", "all"}:
            system.call("GET", "/admin/findings", status=404)
            system.call("GET", f"/admin/jobs/{pushed['id']}/why", status=404)
        else:
            gone = {check.name for feature in FEATURES if feature.name == name for check in feature.checks}
            assert gone.isdisjoint(system.call("GET", "/admin/findings")["checks"])
