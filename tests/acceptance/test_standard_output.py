"""What commands do with a standard output that takes nothing, or not every character."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.cli import Cli
from support.forked import OJS_NATS
from support.system import System


@pytest.fixture
def cli(system: System, tmp_path: Path) -> Cli:
    return Cli(tmp_path, system.url)


@pytest.mark.parametrize("words", [("list",), ("list", "--json"), ("export",)])
def test_a_full_disk_is_a_sentence(system: System, cli: Cli, words: tuple[str, ...]) -> None:
    system.push("a.b", 1, queue="one")
    program = ("/bin/sh", "-c", 'exec "$@" > /dev/full', "sh", *OJS_NATS)
    said = cli(*words, program=program)
    assert (said.code, said.err) == (1, "ojs-nats: standard output can't be written: no space left on device.\n")


def test_a_closed_standard_output_is_none_at_all(system: System, cli: Cli) -> None:
    system.push("a.b", 1, queue="one")
    said = cli("list", program=("/bin/sh", "-c", 'exec "$@" >&-', "sh", *OJS_NATS))
    assert (said.code, said.err) == (0, "")


def test_json_is_escaped_where_the_encoding_lacks_it(system: System, cli: Cli) -> None:
    job_id = system.push("a.b", "Zoë 🙂", queue="one")["id"]
    program = ("/bin/sh", "-c", 'PYTHONIOENCODING=ascii exec "$@"', "sh", *OJS_NATS)
    said = cli("get", job_id, "--json", program=program)
    assert (said.code, said.err) == (0, "")
    assert said.out.isascii()
    assert "Zoë 🙂" in json.dumps(json.loads(said.out), ensure_ascii=False)
