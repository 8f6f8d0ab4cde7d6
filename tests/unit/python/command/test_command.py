"""The command as `ojs-nats` has it, with and without the server's package."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from ojs_nats._command.main import main

HERE = "ojs-nats: {!r} isn't here: all commands but 'worker' come with pip install ojs-nats-server\n"


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server's package isn't installed."""
    monkeypatch.setitem(sys.modules, "ojs_command", None)
    monkeypatch.delitem(sys.modules, "ojs_command.main", raising=False)


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["ojs-nats", *words])
    try:
        return main()
    except SystemExit as end:
        return int(end.code or 0)


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("words", [["push", "t"], ["dev"], ["--server", "http://h", "list"], ["wroker", "app.jobs"]])
def test_a_command_that_is_elsewhere_says_where(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, *words) == 2
    assert capsys.readouterr() == ("", HERE.format(words[0]))


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("words", [["--help"], ["-h"], ["help"]])
def test_help_names_the_worker_and_where_the_rest_is(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, *words) == 0
    said = capsys.readouterr().out
    assert "  worker      run the jobs that your Python modules define\n" in said
    assert "pip install ojs-nats-server" in said
    assert run(monkeypatch) == 2
    assert capsys.readouterr() == ("", said)


@pytest.mark.parametrize("words", [["--version"], ["version"]])
def test_the_version_is_there_with_the_server_and_without(
    words: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    assert run(monkeypatch, *words) == 0
    said = capsys.readouterr().out
    assert re.fullmatch(r"ojs-nats 0\.\S+ \(Python 3\.\S+\)\n", said)
    request.getfixturevalue("alone")
    assert run(monkeypatch, *words) == 0
    assert capsys.readouterr().out == said


def test_the_version_is_told_without_the_parsers_of_commands() -> None:
    code = "import sys, ojs_nats._command.main as m; m.main(); print({'argparse', 'msgspec'} & set(sys.modules))"
    said = subprocess.run([sys.executable, "-c", code, "--version"], capture_output=True, text=True, check=True)
    assert said.stdout.splitlines()[1:] == ["set()"]


@pytest.mark.parametrize("words", [["worker", "--help"], ["help", "worker"]])
def test_a_worker_explains_itself_alike_with_the_server_and_without(
    words: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    assert run(monkeypatch, *words) == 0
    said = capsys.readouterr().out
    assert said.startswith("usage: ojs-nats worker [-h]")
    request.getfixturevalue("alone")
    assert run(monkeypatch, *words) == 0
    assert capsys.readouterr().out == said


def test_all_other_commands_are_the_server_s(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "--help") == 0
    said = capsys.readouterr().out
    assert [name for name in ("worker", "dev", "push", "doctor", "gateway") if f"\n    {name} " not in said] == []
    assert run(monkeypatch, "config") == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a.b", "--concurency", "5"], "unrecognized arguments: --concurency 5 (did you mean --concurrency?)"),
        ([], "the following arguments are required: MODULE"),
        (["a.b", "--log-level", "loud"], "argument --log-level: invalid choice: 'loud'"),
    ],
)
def test_wrong_arguments_of_a_worker_are_named(
    words: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "worker", *words) == 2
    assert capsys.readouterr().err.startswith(f"ojs-nats worker: {said}")


@pytest.mark.usefixtures("logging_kept")
@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("OJS_CONCURRENCY", "ten", "OJS_CONCURRENCY is a number of jobs, not 'ten'."),
        ("OJS_LOG_PAYLOADS", "no", "OJS_LOG_PAYLOADS is on or off, not 'no'."),
        (
            "OJS_URL",
            "ftp://h",
            "OJS_URL: a server is named by its http://, https://, nats:// or tls:// address, not 'ftp://h'",
        ),
    ],
)
def test_a_worker_that_cannot_start_says_why(
    variable: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(variable, value)
    assert run(monkeypatch, "worker", "no.such.module") == 1
    assert capsys.readouterr().err == f"ojs-nats worker: {said}\n"


@pytest.mark.usefixtures("logging_kept")
def test_an_option_of_0_2_that_does_nothing_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OJS_LOG_PAYLOADS", "no")
    assert run(monkeypatch, "worker", "no.such.module", "--ahead", "100") == 1
    assert capsys.readouterr().err.startswith("ojs-nats worker: --ahead does nothing now (CHANGELOG, 0.2 to 0.3)\n")
