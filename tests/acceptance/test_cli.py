"""Client commands of `ojs-nats`, piped: plain text, JSON, exit codes."""

from __future__ import annotations

import select
import signal
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any

import pytest

from ojs_command.main import main
from support.cli import Cli
from support.proxy import Proxy
from support.system import System
from support.waiting import until

NOWHERE = "http://127.0.0.1:1"
TOP = ("top", "--json", "--interval", "100ms")
NO_JOB = "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f"


@pytest.fixture
def cli(system: System, tmp_path: Path) -> Cli:
    return Cli(tmp_path, system.url)


@pytest.fixture
def unused(_shared_system: System, tmp_path: Path) -> Cli:
    """Before a server that is there, and that nothing is asked of: it isn't emptied before."""
    return Cli(tmp_path, _shared_system.url)


@pytest.fixture
def alone(tmp_path: Path) -> Cli:
    """What is asked of no server."""
    return Cli(tmp_path, NOWHERE)


def failed(system: System, message: str = "boom", **error: Any) -> str:
    """The id of a job that has failed for good."""
    [job] = system.fetch("default", worker_id="w1")
    said = {"message": message, "type": "Boom", "retryable": False, **error}
    system.call("POST", "/workers/nack", {"job_id": job["id"], "error": said})
    return str(job["id"])


# Push


def test_a_push_prints_the_id_and_takes_every_option(cli: Cli, system: System) -> None:
    words = ["--queue", "mail", "--priority", "7", "--retry", "9", "--run-timeout", "30s", "--meta", "tenant=acme"]
    out = cli.asked("push", "email.send", "ada@example.org", *words, "--tag", "x", '{"n": [1]}', "5", "--meta", "size=3")
    job = system.job(out.strip())
    assert (job["type"], job["args"], job["queue"]) == ("email.send", ["ada@example.org", {"n": [1]}, 5], "mail")
    assert (job["priority"], job["max_attempts"], job["timeout_ms"]) == (7, 9, 30_000)
    assert (job["meta"]["tenant"], job["meta"]["size"], job["tags"]) == ("acme", 3, ["x"])


def test_a_push_may_wait_for_its_time(cli: Cli, system: System) -> None:
    at = (datetime.now(UTC) + timedelta(hours=2)).replace(microsecond=0)
    for words, wanted in ((("--delay", "2h"), None), (("--at", at.isoformat()), at)):
        job = system.job(cli.json("push", "t", *words)["id"])
        assert job["state"] == "scheduled"
        found = datetime.fromisoformat(job["scheduled_at"])
        assert found == wanted or (wanted is None and found > datetime.now(UTC) + timedelta(hours=1))


def test_a_unique_job_is_refused_the_second_time(cli: Cli) -> None:
    first = cli.json("push", "t", "1", "--unique")
    assert first["created"] is True
    said = cli("push", "t", "1", "--unique")
    assert said.code == 1
    assert "ojs-nats get" in said.err
    assert said.out == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("push", "Tenant.0"), "a job type is one or more words"),
        (("push", "t", "--queue", "My Queue"), "a queue's name has lower-case letters"),
        (("push", "t", "--tag", "a" * 256), "one of tags is a text of 1 to 255"),
        (("push", "t", "--priority", "500"), "a priority is a whole number from -100 to 100"),
        (("cron", "add", "nightly", "@daily", "t", "--queue", "My Queue"), "a queue's name has lower-case letters"),
    ],
)
def test_a_name_that_no_server_takes_is_refused_in_a_sentence(unused: Cli, words: tuple[str, ...], said: str) -> None:
    told = unused(*words)
    assert (told.code, told.out) == (2, "")
    assert said in told.err
    assert "Traceback" not in told.err


@pytest.mark.slow
def test_a_push_may_wait_for_its_end(cli: Cli, system: System) -> None:
    with cli.piped("push", "t", "--wait", "--timeout", "1m") as waiting:
        [job] = until(lambda: system.fetch("default", worker_id="w1")) or []
        system.call("POST", "/workers/ack", {"job_id": job["id"], "result": {"n": 1}})
        said = waiting.said()
        assert (said.code, said.out) == (0, '{"n":1}\n')
    with cli.piped("push", "t", "--wait") as waiting:
        until(lambda: system.call("GET", "/jobs?state=available")["jobs"])
        job_id = failed(system)
        said = waiting.said()
        assert said.code == 1
        assert f"Job {job_id} was discarded after 1 attempts: boom." in said.err
    assert cli("push", "t", "--wait", "--timeout", "10ms").code == 1
    assert cli("push", "t", "--timeout", "1s").code == 2


def test_lines_of_standard_input_become_jobs(cli: Cli, system: System) -> None:
    lines = "".join(f'[{n}, "x"]\n' for n in range(1_203))
    ids = cli.asked("push", "many", "-", "--queue", "lots", stdin=lines).split()
    assert len(set(ids)) == 1_203
    assert system.job(ids[7])["args"] == [7, "x"]
    told = cli("push", "many", "-", "--json", stdin="[1]\n\n[2]\n")
    assert [line["line"] for line in told.lines] == [1, 3]


def test_a_line_that_is_no_array_is_told_of_and_those_before_are_pushed(cli: Cli, system: System) -> None:
    said = cli("push", "many", "-", stdin='[1]\n{"a": 1}\n[3]\n')
    assert said.code == 1
    assert "Line 2 is no JSON array" in said.err
    assert len(said.out.split()) == 1
    assert len(system.call("GET", "/jobs")["jobs"]) == 1


@pytest.mark.parametrize("argument", [2_000 * "[", 500 * "[" + 500 * "]", '{"a": "\\ud800"}', "\udcff"])
def test_an_argument_that_no_job_can_have_is_told_of_in_a_line(cli: Cli, argument: str) -> None:
    said = cli("push", "t.x", argument)
    assert said.code in {1, 2}
    assert "Traceback" not in said.err
    assert said.err.startswith("ojs-nats: ")
    assert len(said.err) < 500


@pytest.mark.parametrize(
    "words",
    [
        ("get", "\udcff"),
        ("queues", "pause", "\udcff"),
        ("cron", "add", "\udcff", "@daily", "t"),
        ("cancel", "x", "--reason", "\udcff"),
    ],
)
def test_bytes_that_are_no_text_are_told_of_in_a_line(alone: Cli, words: tuple[str, ...]) -> None:
    said = alone(*words)
    assert (said.code, said.err) == (2, "ojs-nats: '\\udcff' is no text in UTF-8.\n")


def test_lines_that_are_refused_leave_the_others(cli: Cli) -> None:
    said = cli("push", "t", "-", "--unique", stdin="[1]\n[1]\n[2]\n")
    assert said.code == 1
    assert len(said.out.split()) == 2
    assert "line 2: " in said.err
    assert "1 of 3 lines were refused; the others were pushed." in said.err


# Jobs


def test_a_job_is_shown_with_its_errors_and_history(cli: Cli, system: System) -> None:
    cli.asked("push", "t", '{"secret": "\\u001b[31m"}', "--meta", "a=b")
    job_id = failed(system, "it went\x1b[2J wrong\nbadly")
    out = cli.asked("get", job_id)
    assert "discarded" in out
    assert "it went\\x1b[2J wrong\\nbadly" in out
    assert "\x1b" not in out
    assert [word for word in ("pushed", "claimed", "failed") if word not in out] == []
    told = cli.json("get", job_id)
    assert (told["id"], told["errors"][0]["type"]) == (job_id, "Boom")
    said = cli("get", NO_JOB)
    assert (said.code, said.out) == (1, "")
    assert "not" in said.err


@pytest.mark.slow
def test_a_job_that_failed_is_shown_with_where_and_how(cli: Cli, system: System) -> None:
    cli.asked("push", "email.send")
    trace = ["Traceback (most recent call last):\n", '  File "app/jobs.py", line 12, in send\n', "Boom: no such user\n"]
    job_id = failed(system, "no such user", backtrace=trace, details={"where": "app/jobs.py:12 in send"})
    shown = cli.asked("get", job_id)
    assert "app/jobs.py:12 in send" in shown
    assert "".join(trace) in shown
    said = f"Attempt 1 failed at app/jobs.py:12 in send: Boom: no such user. 'ojs-nats get {job_id}'"
    assert said in cli.asked("why", job_id)


def test_jobs_are_listed_by_filters(cli: Cli) -> None:
    for queue, tag in (("a", "x"), ("a", "y"), ("b", "x")):
        cli.asked("push", f"t.{queue}", "--queue", queue, "--tag", tag, "--meta", f"of={tag}")
    assert len(cli.asked("list").splitlines()) == 4
    for words, number in (
        (("--queue", "a"), 2), (("--type", "t.b"), 1), (("--tag", "x"), 2), (("--meta", "of=y"), 1), (("--limit", "1"), 1),
        (("--state", "active"), 0), (("--since", "1h"), 3), (("--until", "1h"), 0),
    ):  # fmt: skip
        assert len(cli.json("list", *words)) == number, words
    header, row = cli.asked("list", "--queue", "b").splitlines()
    assert header.split() == ["ID", "TYPE", "QUEUE", "STATE", "ATTEMPT", "CREATED", "ERROR"]
    assert row.split()[1:5] == ["t.b", "b", "available", "0/3"]
    none = cli("list", "--state", "active")
    assert (none.out, none.err) == ("", "No jobs fit that.\n")


def test_jobs_are_cancelled_and_retried_by_id(cli: Cli, system: System) -> None:
    ids = [cli.asked("push", "t").strip() for _ in range(2)]
    assert cli.asked("cancel", *ids) == "2 jobs cancelled.\n"
    again = cli("cancel", ids[0], NO_JOB)
    assert again.code == 1
    assert ids[0] in again.err
    assert cli.json("retry", ids[0])["changed"] == [ids[0]]
    assert system.job(ids[0])["state"] == "available"


@pytest.mark.slow
def test_many_jobs_are_cancelled_by_a_filter_once_that_is_confirmed(cli: Cli) -> None:
    cli.asked("push", "t", "-", "--queue", "q", stdin="[1]\n" * 1_100)
    asked = cli("cancel", "--queue", "q")
    assert asked.code == 1
    assert "Cancel 1,100 jobs" in asked.err
    assert "--yes" in asked.err
    assert len(cli.json("list", "--queue", "q", "--state", "available", "--limit", "5")) == 5
    assert cli.asked("cancel", "--queue", "q", "--yes", "--reason", "wrong list") == "1,100 jobs cancelled.\n"
    assert cli.asked("cancel", "--queue", "q", "--yes", "--state", "available") == "0 jobs cancelled.\n"


@pytest.mark.parametrize("words", [("cancel",), ("cancel", NO_JOB, "--queue", "q"), ("retry", "--state", "gone", "--yes")])
def test_a_selection_that_says_nothing_or_too_much_is_a_usage_error(unused: Cli, words: tuple[str, ...]) -> None:
    assert unused(*words).code == 2


# Queues, workers, dead letters, cron entries, workflows


@pytest.mark.slow
def test_queues(cli: Cli) -> None:
    cli.asked("push", "t", "--queue", "q")
    assert "q " in cli.asked("queues")
    assert [queue["name"] for queue in cli.json("queues", "list", "--limit", "1")] == ["q"]
    assert cli.asked("queues", "pause", "q") == "Queue q is paused.\n"
    assert "paused" in cli.asked("queues", "get", "q")
    assert cli.json("queues", "get", "q")["counts"]["available"] == 1
    cli.asked("queues", "resume", "q")
    changed = cli.json("queues", "config", "q", "--max-size", "5", "--rate", "100/1m", "--retry", "4", "--allow", "t,u.*")
    assert changed["own_config"]["max_size"] == 5
    assert changed["own_config"]["rate_limit"] == {"limit": 100, "period": "PT1M"}
    assert changed["own_config"]["default_retry"]["max_attempts"] == 4
    assert "max_size" in cli.asked("queues", "config", "q")
    assert cli.json("queues", "config", "q", "--unset", "max_size")["own_config"]["max_size"] is None
    assert cli("queues", "config", "q", "--unset", "size").code == 2
    assert cli("queues", "purge", "q").code == 1
    assert cli.json("queues", "purge", "q", "--yes")["purged_count"] == 1
    assert cli("queues", "get", "nothing").code == 1


@pytest.mark.slow
@pytest.mark.parametrize("words", [("pause",), ("resume",), ("config", "--concurrency", "2")])
def test_a_change_of_a_queue_that_is_not_there_yet_says_so(cli: Cli, words: tuple[str, ...]) -> None:
    action, *options = words
    cli.asked("push", "t", "--queue", "known")
    typed = cli("queues", action, "knwon", *options, "--json")
    assert typed.code == 0
    assert typed.err == "There was no queue knwon before: no job has been pushed to it.\n"
    assert cli("queues", action, "known", *options).err == ""


@pytest.mark.slow
def test_workers(cli: Cli, system: System) -> None:
    assert cli("workers").err.startswith("No workers")
    for worker in ("w1", "w2"):
        system.call("POST", "/workers/heartbeat", {"worker_id": worker, "queues": ["q"], "state": "running"})
    assert [row.split()[0] for row in cli.asked("workers").splitlines()] == ["WORKER", "w1", "w2"]
    assert cli.json("workers", "--state", "running")[0]["id"] == "w1"
    assert cli.asked("workers", "quiet", "w1") == "Told 1 worker to quiet.\n"
    assert cli.json("workers", "get", "w1")["directive"] == "quiet"
    assert "running, told quiet" in cli.asked("workers")
    cli.asked("workers", "resume", "w1")
    assert cli("workers", "terminate", "--all").code == 1
    assert cli.json("workers", "terminate", "--all", "--yes")["workers"] == 2
    assert "terminate" in cli.asked("workers", "get", "w2")
    assert cli("workers", "quiet").code == 2


@pytest.mark.slow
def test_dead_letters(cli: Cli, system: System) -> None:
    system.call("PUT", "/queues/default/config", {"default_retry": {"max_attempts": 1, "on_exhaustion": "dead_letter"}})
    ids = []
    for _ in range(4):
        cli.asked("push", "t")
        ids.append(failed(system, retryable=True))
    assert len(cli.json("dead-letter")) == 4
    assert len(cli.asked("dead-letter", "--error-type", "Boom", "--limit", "2").splitlines()) == 3
    assert "Boom" in cli.asked("dead-letter", "get", ids[0])
    assert cli.asked("dead-letter", "retry", ids[0]) == "1 dead letter retried.\n"
    assert cli.json("dead-letter", "delete", ids[1])["done"] == 1
    twice = cli("dead-letter", "delete", ids[1])
    assert twice.code == 1
    assert ids[1] in twice.err
    asked = cli("dead-letter", "retry", "--queue", "default")
    assert asked.code == 1
    assert "there are 2 in queue default" in asked.err
    assert cli.json("dead-letter", "retry", "--type", "t", "--since", "1h", "--yes")["done"] == 2
    assert cli("dead-letter", "retry").code == 2
    failed(system, retryable=True)
    assert cli("dead-letter", "purge").code == 1
    assert cli.asked("dead-letter", "purge", "--yes") == "1 dead letter deleted.\n"


@pytest.mark.slow
def test_cron_entries(cli: Cli) -> None:
    options = ["--queue", "r", "--timezone", "Europe/Berlin", "--overlap", "skip"]
    made = cli.json("cron", "add", "nightly", "0 3 * * *", "report", "daily", *options)
    assert (made["timezone"], made["job_template"]["args"]) == ("Europe/Berlin", ["daily"])
    assert "nightly" in cli.asked("cron")
    assert "Europe/Berlin" in cli.asked("cron", "get", "nightly")
    assert cli.asked("cron", "pause", "nightly") == "Cron entry nightly is paused.\n"
    assert cli.json("cron")[0]["enabled"] is False
    assert "runs next" in cli.asked("cron", "resume", "nightly")
    job_id = cli.json("cron", "trigger", "nightly")["job_id"]
    assert job_id in cli.asked("cron", "history", "nightly")
    assert cli.json("cron", "history", "nightly")[0]["manual"] is True
    cli.asked("cron", "delete", "nightly")
    assert cli("cron", "get", "nightly").code == 1
    assert cli("cron", "add", "bad", "61 * * * *", "t").code == 1


@pytest.mark.slow
def test_workflows(cli: Cli, system: System) -> None:
    step = {"type": "t", "args": [], "options": {"queue": "q"}}
    inner = {"type": "group", "jobs": [step, step]}
    flow = system.call("POST", "/workflows", {"type": "chain", "name": "ship", "steps": [step, inner]}, 201)["workflow"]
    tree = cli.asked("workflows", "get", flow["id"])
    [top, *steps] = tree[tree.index("ship running") :].splitlines()
    assert top == "ship running"
    assert [len(line) - len(line.lstrip()) for line in steps] == [2, 2, 4, 4]
    assert [one["name"] for one in cli.json("workflows", "--state", "running")] == ["ship"]
    assert "ship" in cli.asked("workflows")
    assert cli.json("workflows", "cancel", flow["id"])["state"] == "cancelled"
    assert cli.asked("workflows", "retry", flow["id"]) == f"Workflow {flow['id']} is running again.\n"
    assert cli.json("workflows", "get", flow["id"])["state"] == "running"
    assert cli("workflows", "cancel", NO_JOB).code == 1


# What happens


@pytest.mark.slow
def test_events_that_have_happened_are_shown_the_last_ones_last(cli: Cli) -> None:
    for n in range(3):
        cli.asked("push", f"t.n{n}")
    told = cli("events", "--json", "--type", "job.enqueued", "--limit", "2").lines
    assert [event["data"]["job_type"] for event in told] == ["t.n1", "t.n2"]
    assert [event["data"]["job_type"] for event in cli("events", "--json").lines] == ["t.n0", "t.n1", "t.n2"]
    assert cli("events", "--json", "--type", "job.*", "--queue", "none").lines == []
    assert "job.enqueued" in cli.asked("events", "--job-type", "t.n0")
    assert cli("events", "--job", NO_JOB).code == 2


def test_events_are_followed_until_somebody_stops(cli: Cli, system: System) -> None:
    with cli.piped("events", "--follow", "--json", "--type", "job.*", "--queue", "q") as tail:
        _await_follower(system, tail.stdout)
        tail.process.send_signal(signal.SIGINT)
        said = tail.said()
        assert (said.code, said.err) == (130, "")
    with cli.piped("events", "--follow", "--limit", "1") as follower:
        _await_follower(system, follower.stdout)
        assert follower.said().code == 0


def _await_follower(system: System, tail: IO[str]) -> None:
    """Return once it has told of a job: it begins at an unknown time, so there are several."""

    def told() -> str:
        system.push("t", queue="q")
        return _ready(tail)

    assert "job.enqueued" in (until(told, 60) or "")


def _ready(tail: IO[str]) -> str:
    ready, _, _ = select.select([tail], [], [], 0.2)
    return tail.readline() if ready else ""


def test_the_events_of_a_job_end_with_it(cli: Cli, system: System) -> None:
    job_id = cli.asked("push", "t", "--retry", "1000").strip()
    with cli.piped("events", "--follow", "--job", job_id) as tail:

        def told() -> str:
            system.call(
                "POST",
                "/workers/nack",
                {"job_id": system.fetch("default", worker_id="w1")[0]["id"], "error": {"message": "again"}},
            )
            system.call("POST", f"/admin/jobs/{job_id}/retry")
            return _ready(tail.stdout)

        assert job_id in (until(told, 60) or "")
        system.call("POST", "/workers/ack", {"job_id": system.fetch("default", worker_id="w1")[0]["id"]})
        said = tail.said()
        assert said.code == 0, said
        assert "job.completed" in said.out.splitlines()[-1]


def test_numbers(cli: Cli) -> None:
    cli.asked("push", "t")
    snapshot = cli.json("top", "--once")
    assert (snapshot["stats"]["jobs"]["available"], snapshot["queues"][0]["name"]) == (1, "default")
    once = cli.asked("top", "--once")
    assert "1 available" in once
    assert [line.split()[0] for line in once.splitlines() if line[:2] in {"5m", "1h", "1d"}] == ["5m", "1h", "1d"]


@pytest.mark.parametrize(("old", "new"), [("tail", "events --follow"), ("stats", "top --once")])
def test_a_command_of_an_earlier_version_names_the_one_that_took_its_place(cli: Cli, old: str, new: str) -> None:
    for words in ((old,), (old, "--queue", "q"), ("--json", old)):
        said = cli(*words)
        assert (said.code, said.out) == (2, "")
        assert said.err == f"ojs-nats: there is no {old!r} any more: use 'ojs-nats {new}'; see 'ojs-nats --help'\n"


@pytest.mark.slow
def test_top_is_told_again_and_again_without_a_terminal_until_it_is_ended_or_its_server_is_gone(
    system: System, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        with Proxy.before(system.url) as proxy:
            ended, left = (stack.enter_context(Cli(tmp_path, url).piped(*TOP)) for url in (system.url, proxy.url))
            for top in (ended, left):
                assert all(line.startswith('{"at":') for line in (top.stdout.readline(), top.stdout.readline()))
        ended.process.send_signal(signal.SIGINT)
        assert ended.process.wait(60) == 130
        said = left.said()
        assert said.code == 3
        assert said.err.startswith("ojs-nats: ")
        assert len(said.err.splitlines()) == 1


# Servers and errors


@pytest.mark.parametrize("words", ["list", "queues", "push t", "top --once", "events -f", "workers get w"])
def test_a_server_that_is_not_there_is_told_of_at_once(alone: Cli, words: str) -> None:
    said = alone(*words.split(), "--server", NOWHERE)
    assert (said.code, said.out) == (3, "")
    assert said.err == (
        f"ojs-nats: No OJS server answers at {NOWHERE} (from --server): start one with 'ojs-nats dev', or name another with "
        "--server or --context.\n"
    )


def test_options_of_all_commands_go_before_or_behind(cli: Cli, system: System) -> None:
    elsewhere = cli._replace(url=NOWHERE)
    assert elsewhere("--server", system.url, "--json", "queues").json == []
    assert elsewhere("queues", "list", "--server", system.url, "--json").json == []
    assert elsewhere("queues").code == 3
    assert elsewhere("--server", system.url, "config").code == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("push",), "required: TYPE"),
        (("push", "t", "[1"), "no JSON"),
        (("push", "t", "--delay", "soon"), "30s"),
        (("push", "t", "--at", "tomorrow"), "2026-11-24T08:00"),
        (("push", "t", "--meta", "x"), "name=value"),
        (("list", "--limit", "0"), "from 1 on"),
        (("list", "--nonsense"), "--nonsense"),
        (("queues", "explode", "q"), "explode"),
        (("list", "--server", "ftp://x"), "http://"),
        (("list", "--context", "nowhere"), "ojs-nats context set nowhere"),
    ],
)
def test_a_wrong_use_says_what_is_wrong(unused: Cli, words: tuple[str, ...], said: str) -> None:
    found = unused(*words)
    assert (found.code, found.out) == (2, "")
    assert said in found.err


def test_a_reader_that_has_seen_enough_is_no_error(cli: Cli) -> None:
    cli.asked("push", 120 * "t", "-", stdin="[1]\n" * 500)  # more than a pipe takes
    with cli.started("list", "--limit", "3000") as listing:
        assert listing.stdout is not None
        listing.stdout.readline()
        listing.stdout.close()
        assert listing.wait(30) == 0
        assert listing.stderr is not None
        assert listing.stderr.read() == ""


@pytest.mark.parametrize(
    "words",
    [
        ("push",), ("get",), ("list",), ("cancel",), ("retry",), ("events",), ("top",), ("doctor",),
        ("completion",), ("queues", "list"), ("queues", "config"), ("workers", "quiet"), ("dead-letter", "retry"),
        ("cron", "add"), ("workflows", "get"), ("context", "set"),
    ],
)  # fmt: skip
def test_help_teaches_by_examples(capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    """In this process: help is printed before a command begins."""
    with pytest.raises(SystemExit) as left:
        main([*words, "--help"])
    out = capsys.readouterr().out
    assert left.value.code == 0
    assert f"\n  ojs-nats {words[0]}" in out[out.index("examples:") :] or words == ("completion",)


def test_a_completed_command_line_in_bash(alone: Cli) -> None:
    script = alone.asked("completion", "bash")
    source = f"""{script}
COMP_WORDS=(ojs-nats que); COMP_CWORD=1; COMP_LINE='ojs-nats que'; COMP_POINT=12
complete -p ojs-nats >&2 || exit 9
$(complete -p ojs-nats | sed 's/.*-F \\([^ ]*\\).*/\\1/') ojs-nats que ojs-nats; echo "${{COMPREPLY[@]}}"
COMP_WORDS=(ojs-nats queues p); COMP_CWORD=2
$(complete -p ojs-nats | sed 's/.*-F \\([^ ]*\\).*/\\1/') ojs-nats p queues; echo "${{COMPREPLY[@]}}"
COMP_WORDS=(ojs-nats list --sta); COMP_CWORD=2
$(complete -p ojs-nats | sed 's/.*-F \\([^ ]*\\).*/\\1/') ojs-nats --sta list; echo "${{COMPREPLY[@]}}"
COMP_WORDS=(ojs-nats list --state dis); COMP_CWORD=3
$(complete -p ojs-nats | sed 's/.*-F \\([^ ]*\\).*/\\1/') ojs-nats dis --state; echo "${{COMPREPLY[@]}}"
"""
    said = alone("-c", source, program=["bash"])
    assert said.code == 0, said
    found = [sorted(line.split()) for line in said.out.splitlines()]
    assert found == [["queues"], ["pause", "purge"], ["--state"], ["discarded"]]
    for shell in ("zsh", "fish"):
        assert "dead-letter" in alone.asked("completion", shell)
