from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ojs_command.main import main
from ojs_command.services import SERVICES
from ojs_features.startup import OPTIONS as OF_FEATURES
from ojs_runtime.settings import OPTIONS


@pytest.fixture(autouse=True)
def _plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("OJS_")]:
        monkeypatch.delenv(name)


def test_config_prints_each_value_and_where_it_was_written(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OJS_NATS", "nats://user:secret@h:4222")
    assert main(["config", "--port", "9000"]) == 0
    lines = {line.split()[0]: line.split()[1:] for line in capsys.readouterr().out.splitlines()}
    assert lines["port"] == ["9000", "--port"]
    assert lines["nats"] == ["nats://***@h:4222", "OJS_NATS"]
    assert lines["replicas"] == ["1", "default"]
    assert list(lines) == [option.name for option in (*OPTIONS, *OF_FEATURES)]


def test_config_as_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "ojs-nats.toml").write_text('log_level = "debug"')
    assert main(["config", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["log_level"] == {"value": "debug", "source": "ojs-nats.toml"}


def test_who_reads_the_settings_may_stop_reading() -> None:
    """As in `ojs-nats config | head -1`."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        command = [sys.executable, "-m", "ojs_command", "config"]
        ended = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    finally:
        os.close(writing)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_all_that_is_wrong_with_a_command_line_is_said_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gateway", "--prot=80", "--nats-port", "1", "--replicas", "x"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "ojs-nats gateway: 3 settings can't be used:",
        "  --prot: unknown option (did you mean --port?)",
        "  --nats-port: not an option of gateway",
        "  --replicas: 'x' is not a whole number from 1 to 5",
    ]


def test_a_stray_word_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scheduler", "now"]) == 2
    assert capsys.readouterr().err == "ojs-nats scheduler: now: unknown argument\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["lits"], "ojs-nats: there is no 'lits' (did you mean list?); see 'ojs-nats --help'"),
        (
            ["list", "--quue", "x"],
            "ojs-nats list: unrecognized arguments: --quue x (did you mean --queue?); see 'ojs-nats list --help'",
        ),
        (["queues", "gt"], "ojs-nats queues: there is no 'gt' (did you mean get?); see 'ojs-nats queues --help'"),
    ],
)
def test_a_slip_of_a_client_s_command_line_is_one_line(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert (ended.value.code, capsys.readouterr().err) == (2, f"{said}\n")


def test_settings_that_are_wrong_elsewhere_than_on_the_command_line_end_it_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OJS_PORT", "x")
    assert main(["config"]) == 1
    assert main(["config", "--port", "80"]) == 1
    assert main(["config", "--prot", "80"]) == 2


@pytest.mark.parametrize(("words", "shown"), [(["help"], "COMMAND"), (["help", "list"], "--queue NAME")])
def test_help_is_a_command(words: list[str], shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0
    assert shown in capsys.readouterr().out


def test_without_a_command_the_help_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "ojs-nats dev" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["dev", "config", *(service.name for service in SERVICES)])
def test_help_teaches_the_variables_and_gives_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main([command, "--help"])
    shown = capsys.readouterr().out
    assert left.value.code == 0
    assert "OJS_LOG_LEVEL" in shown
    assert f"ojs-nats {command}" in shown.partition("examples:")[2] or command == "gateway"


def test_help_of_dev_has_ten_settings_and_help_all_every_one(capsys: pytest.CaptureFixture[str]) -> None:
    def told(words: list[str]) -> set[str]:
        with pytest.raises(SystemExit) as left:
            main(words)
        assert left.value.code == 0
        shown = capsys.readouterr().out
        return {option.name for option in (*OPTIONS, *OF_FEATURES) if f"[{option.env};" in " ".join(shown.split())}

    of_dev = {option.name for option in (*OPTIONS, *OF_FEATURES) if "dev" in option.kinds and not option.secret}
    few = told(["dev", "--help"])
    assert len(few) == 10
    assert few < told(["dev", "--help-all"]) == of_dev


def test_an_option_of_an_earlier_version_is_refused_with_what_holds_now(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gateway", "--trace-url", "https://t/{trace_id}", "--no-dashboard-read-only"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "ojs-nats gateway: 2 settings can't be used:"
    assert said[1].startswith("  --trace-url: there is no such setting any more; the dashboard shows")
    assert said[2].startswith("  --no-dashboard-read-only: there is no such setting any more; give those")


def test_the_version_is_that_of_the_distribution(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out.startswith("ojs-nats 0.")


def test_every_service_of_the_table_can_be_imported() -> None:
    assert all(callable(service.load()) for service in SERVICES)
