"""Jobs as lines of JSON: out of a server, and into it again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ojs_engine.base.ids import new_job_id
from ojs_engine.base.payload_limits import PayloadLimits
from support.cli import Cli
from support.system import System


@pytest.fixture
def cli(system: System, tmp_path: Path) -> Cli:
    return Cli(tmp_path, system.url)


def test_exported_jobs_are_imported_as_they_were_pushed(system: System, cli: Cli, tmp_path: Path) -> None:
    options = {"queue": "one", "priority": 3, "tags": ["t"], "retry": {"max_attempts": 7}, "timeout_ms": 1_000}
    first = system.push("a.b", 1, {"b": None}, meta={"tenant": "acme"}, unique={"keys": ["type", "args"]}, **options)["id"]
    later = system.push("a.b", 1, {"b": None}, queue="one", delay="1h")["id"]
    system.push("a.b", 1, {"b": None}, queue="two")
    done = system.push("a.b", 1, {"b": None}, queue="one")["id"]
    system.request("DELETE", f"/ojs/v1/jobs/{done}")
    before = {job_id: system.job(job_id) for job_id in (first, later)}
    file = tmp_path / "jobs.ndjson"
    assert "exported 3 jobs" in cli("export", str(file), "--queue", "one").err
    assert [json.loads(line)["id"] for line in file.read_text(encoding="utf-8").splitlines()] == [first, later, done]
    assert file.stat().st_mode & 0o777 == 0o600
    asked = cli.json("import", str(file), "--dry-run")
    assert asked == {"pushed": 0, "there": 2, "ended": 1, "member": 0, "refused": 0, "dry_run": True}
    system.reset()
    asked = cli.json("import", str(file), "--dry-run")
    assert (asked["pushed"], asked["there"]) == (2, 0)
    assert system.request("GET", "/ojs/v1/jobs").body["jobs"] == []
    told = cli.json("import", str(file))
    assert told == {"pushed": 2, "there": 0, "ended": 1, "member": 0, "refused": 0, "dry_run": False}
    for job_id, old in before.items():
        new = system.job(job_id)
        own = {"created_at", "enqueued_at"}
        assert {name: value for name, value in new.items() if name not in own} == {
            name: value for name, value in old.items() if name not in own
        }
    assert cli.json("import", str(file))["there"] == 2
    assert cli.json("import", str(file), "--again")["pushed"] == 1


def test_export_writes_to_standard_output_and_over_no_file(system: System, cli: Cli, tmp_path: Path) -> None:
    ids = [system.push("a.b", 1, {"b": None})["id"] for _ in range(3)]
    lines = cli.asked("export", "--limit", "2").splitlines()
    assert [json.loads(line)["id"] for line in lines] == ids[:2]
    assert cli.asked("export", "-", "--limit", "2").splitlines() == lines
    (tmp_path / "there").write_text("mine", encoding="utf-8")
    said = cli("export", str(tmp_path / "there"))
    assert (said.code, "is there already: name another file" in said.err) == (1, True)
    assert (tmp_path / "there").read_text(encoding="utf-8") == "mine"


NO_JOBS = [
    ("{", "Line 2 is no JSON object of a job"),
    ('{"type": "a.b", "args": []}', "Line 2 has no id"),
    ('{"id": "x", "redacted": ["args"]}', "Line 2 lacks what its job carries (args)"),
    ('{"id": "x", "redacted": true}', "Line 2 lacks what its job carries (True)"),
]


def test_a_line_that_cannot_be_imported_is_named(system: System, cli: Cli) -> None:
    job_id = system.push("a.b", 1, {"b": None})["id"]
    [exported] = cli.asked("export").splitlines()
    for line, said in NO_JOBS:
        system.reset()
        found = cli("import", "-", stdin=f"{exported}\n{line}\n")
        assert (found.code, said in found.err) == (1, True), line
        if "lacks" not in said:
            assert system.job(job_id)["state"] == "available", line


def test_refused_lines_are_told_of_and_the_others_pushed(system: System, cli: Cli) -> None:
    job_id = system.push("a.b", 1, {"b": None})["id"]
    line = json.loads(cli.asked("export"))
    system.reset()
    bad = line | {"id": "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f", "type": "No Type"}
    found = cli("import", "-", stdin=f"{json.dumps(bad)}\n{json.dumps(line)}\n")
    assert found.code == 1
    assert "line 1: " in found.err
    assert "1 lines were refused; the others were pushed" in found.err
    assert system.job(job_id)["state"] == "available"


def test_many_large_jobs_are_imported(system: System, cli: Cli) -> None:
    """More than a server takes in one request."""
    ids = [new_job_id(number) for number in range(90)]
    lines = [json.dumps({"id": job_id, "type": "a.b", "args": ["x" * 60_000]}) for job_id in ids]
    assert len("".join(lines)) > PayloadLimits().max_body_bytes
    found = cli("import", "-", stdin="\n".join(lines))
    assert (found.code, found.out) == (0, "90 pushed\n")
    assert system.job(ids[-1])["state"] == "available"
