"""Client commands of `ojs-nats` on a terminal: colours, tables, questions, live views."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.cli import Cli
from support.system import System

GREEN, CYAN = "\x1b[32m", "\x1b[36m"


@pytest.fixture
def cli(system: System, tmp_path: Path) -> Cli:
    return Cli(tmp_path, system.url)


def test_tables_have_lines_and_states_have_colours(cli: Cli) -> None:
    cli.asked("push", "t")
    with cli.on_terminal("list") as terminal:
        assert terminal.code() == 0
        assert f"{CYAN}available" in terminal.raw
        assert "────" in terminal.text
    plain = cli.asked("list")
    assert "\x1b" not in plain
    assert "─" not in plain


@pytest.mark.slow
def test_what_others_have_put_into_jobs_does_nothing_to_the_terminal(cli: Cli, system: System) -> None:
    cli.asked("push", "t", "\x1b]0;owned\x07", "--meta", 'x="[bold]\\u001b[31m"')
    job_id = cli.json("list")[0]["id"]
    system.fetch("default", worker_id="\x1b[31mw"[5:])
    system.call("POST", "/workers/nack", {"job_id": job_id, "error": {"message": "\x1b]0;owned\x07[red]", "retryable": False}})
    for words in (("get", job_id), ("list",), ("top", "--once"), ("events",)):
        with cli.on_terminal(*words) as terminal:
            assert terminal.code() == 0
            assert "\x1b]0;" not in terminal.raw
    with cli.on_terminal("get", job_id) as terminal:
        terminal.until("\\x1b]0;owned\\x07[red]")


@pytest.mark.slow
def test_bulk_commands_ask_first(cli: Cli) -> None:
    cli.asked("push", "t", "--queue", "q")
    with cli.on_terminal("cancel", "--queue", "q") as terminal:
        terminal.until("[y/N]")
        terminal.type("n\n")
        assert terminal.code() == 1
        assert "Nothing was changed." in terminal.text
    with cli.on_terminal("cancel", "--queue", "q") as terminal:
        terminal.until("[y/N]")
        terminal.type("\x03")
        assert terminal.code() == 130
        assert "Traceback" not in terminal.text
    assert cli.json("list", "--queue", "q")[0]["state"] == "available"
    with cli.on_terminal("cancel", "--queue", "q") as terminal:
        terminal.until("[y/N]")
        terminal.type("y\n")
        assert terminal.code() == 0
    assert cli.json("list", "--queue", "q")[0]["state"] == "cancelled"


def test_top_fills_the_screen_until_it_is_ended_and_gives_it_back(cli: Cli) -> None:
    cli.asked("push", "t", "--queue", "sightseeing")
    with cli.on_terminal("top", "--interval", "200ms") as terminal:
        terminal.until("sightseeing")
        cli.asked("push", "t", "--queue", "later")
        terminal.until("later")
        terminal.type("\x03")
        assert terminal.code() == 130
        assert "\x1b[?1049h" in terminal.raw
        assert "\x1b[?1049l" in terminal.raw
        assert "Traceback" not in terminal.text


def test_events_are_followed_in_colours(cli: Cli) -> None:
    with cli.on_terminal("events", "--follow", "--type", "job.*") as terminal:
        while "job.enqueued" not in terminal.text:
            cli.asked("push", "t")
            terminal.glance()
        assert f"{CYAN}job.enqueued" in terminal.raw
        terminal.type("\x03")
        assert terminal.code() == 130


def test_a_doctor_marks_what_is_well(cli: Cli) -> None:
    with cli.on_terminal("doctor") as terminal:
        assert terminal.code() == 0
        assert f"{GREEN}ok" in terminal.raw


def test_pushed_lines_are_counted_and_not_listed(cli: Cli, tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text("[1]\n" * 600, encoding="utf-8")
    with cli.on_terminal(*("push", "t", "-"), stdin=lines) as terminal:
        assert terminal.code() == 0
        assert terminal.text.splitlines()[-1] == "Pushed 600 jobs."
        assert "pushing" in terminal.text
