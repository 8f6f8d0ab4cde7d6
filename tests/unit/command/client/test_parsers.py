from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ojs_command.client.parser import CommandParser
from ojs_command.client.registration import add_client_commands


@pytest.fixture
def root() -> argparse.ArgumentParser:
    root = argparse.ArgumentParser(prog="ojs-nats", allow_abbrev=False)
    commands: argparse._SubParsersAction[CommandParser] = root.add_subparsers(dest="command", parser_class=CommandParser)
    add_client_commands(root, commands)
    return root


def test_options_may_stand_among_arguments(root: argparse.ArgumentParser) -> None:
    given = root.parse_args(["push", "t", "1", "--queue", "q", "2", "--json", "3", "--", "--x"])
    assert (given.type, given.args, given.queue, given.json) == ("t", ["1", "2", "3", "--x"], "q", True)
    assert root.parse_args(["push", "t", "-5"]).args == ["-5"]
    assert root.parse_args(["push", "t", "-"]).args == ["-"]


@pytest.mark.parametrize("words", [["--json", "queues"], ["queues", "--json"], ["queues", "list", "--json"]])
def test_a_family_lists_unless_told_otherwise(root: argparse.ArgumentParser, words: list[str]) -> None:
    given = root.parse_args(words)
    assert (given.action, given.json) == ("list", True)


def test_the_server_may_be_named_on_both_sides(root: argparse.ArgumentParser) -> None:
    assert root.parse_args(["--server", "http://a", "queues", "get", "q"]).server == "http://a"
    assert root.parse_args(["--server", "http://a", "queues", "get", "q", "--server", "http://b"]).server == "http://b"
    assert "server" not in root.parse_args(["queues", "get", "q"])


def test_what_is_unknown_is_refused(root: argparse.ArgumentParser, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["list", "extra"], ["list", "--lim", "5"], ["queues", "get", "q", "r"], ["workers", "explode"]):
        with pytest.raises(SystemExit) as ended:
            root.parse_args(words)
        assert ended.value.code == 2
        assert words[-1] in capsys.readouterr().err or words[1] == "--lim"


def examples(text: str) -> list[list[str]]:
    """The command lines in it, as far as a pipe, a redirection or a remark."""
    lines = [line.strip() for line in text.splitlines() if re.match(r"\s*(ID=\$\()?ojs-nats ", line)]
    quoted = re.findall(r"`(ojs-nats [^`]+)`", text)
    found = [re.split(r" \| | > |\)$|\s{3,}| #", line.removeprefix("ID=$("))[0] for line in (*lines, *quoted)]
    return [shlex.split(line)[1:] for line in found]


def parsers(root: argparse.ArgumentParser) -> Iterator[CommandParser]:
    for action in root._actions:
        if isinstance(action, argparse._SubParsersAction):
            for parser in action.choices.values():
                parser.fill()
                yield parser
                yield from parsers(parser)


def test_every_example_is_a_command_line(root: argparse.ArgumentParser) -> None:
    shown = [words for parser in parsers(root) for words in examples(parser.epilog or "")]
    guide = (Path(__file__).parents[4] / "docs" / "cli.md").read_text(encoding="utf-8")
    shown += [
        words
        for words in examples(guide)
        if words[0] not in {"config", "dev", "nats-conf", "reaper", "setup", "worker"}
        and "--help" not in words
        and "TYPE" not in words
    ]
    assert len(shown) > 90
    for words in shown:
        root.parse_args(words)


def test_every_command_that_the_guides_name_is_one(root: argparse.ArgumentParser) -> None:
    docs = Path(__file__).parents[4] / "docs"
    guides = [docs / "tutorial.md", *(docs / "coming-from").glob("*.md")]
    named = [words for guide in guides for words in examples(guide.read_text(encoding="utf-8"))]
    asked = [words for words in named if words[0] not in {"dev", "worker"}]  # which no server is asked by
    assert len(asked) > 10
    for words in asked:
        root.parse_args(words)


def test_a_server_starts_without_what_client_commands_need() -> None:
    unwanted = {
        "aiohttp",
        "asyncio",
        "nats",
        "ojs_command.nats_conf",
        "ojs_nats.client",
        "rich",
        "shtab",
        "structlog",
        "tomli_w",
    }
    code = f"import sys, ojs_command.main as m; m._parser(); print({unwanted} & set(sys.modules))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "set()\n"
