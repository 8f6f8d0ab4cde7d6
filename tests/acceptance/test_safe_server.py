"""The walk "Five minutes to a safe server" of docs/security.md, as it is written."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from support.cli import Cli
from support.forked import OJS_NATS, completed
from support.nats import NatsServer
from support.system import Command, environment, send

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
NATS = "nats://nats.internal:4222"
SERVER = "http://jobs.internal:8080"
API = "/ojs/v1"

pytestmark = pytest.mark.slow


@pytest.fixture
def nats(tmp_path: Path) -> Iterator[NatsServer]:
    with NatsServer(tmp_path / "nats") as server:
        yield server


def steps() -> list[str]:
    """The commands of each step that has some."""
    section = PAGE.read_text(encoding="utf-8").split("## Five minutes to a safe server\n")[1].split("\n## ")[0]
    return re.findall(r"```sh\n(.*?)```", section, re.DOTALL)


def run(folder: Path, commands: str) -> str:
    """What they print, one a line, in a folder of their own, which is also their home. Those of `ojs-nats` are forked."""
    env = environment(HOME=str(folder), XDG_CONFIG_HOME=str(folder))
    printed = ""
    for line in commands.strip().splitlines():
        command, _, file = line.partition(" > ")
        name, *words = shlex.split(command)
        program = OJS_NATS if name == "ojs-nats" else (name,)
        ended = completed([*program, *words], env, folder=folder, seconds=180)
        assert ended.returncode == 0, (line, ended.stderr)
        if file:
            (folder / file).write_text(ended.stdout, encoding="utf-8")
        else:
            printed += ended.stdout
    return printed


def pushed(url: str, token: str | None, queue: str) -> int:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return send("POST", url + API + "/jobs", {"type": "a.b", "args": [], "options": {"queue": queue}}, headers=headers).status


def test_the_walk_ends_with_a_server_that_asks_everybody_for_a_key(nats: NatsServer, tmp_path: Path) -> None:
    first, started, keys = (text.replace(NATS, nats.url) for text in steps())
    program, *words = started.split()
    assert program == "ojs-nats"
    words += ["--port", "0", "--log-format", "json"]
    early = Command(tmp_path, *words, label="early")
    assert early.process.wait(180) != 0
    assert "ojs-nats keys create --role admin" in early.output

    run(tmp_path, first)
    assert (tmp_path / "ops.key").stat().st_mode & 0o777 == 0o600
    gateway = Command(tmp_path, *words, label="gateway")
    try:
        url = f"http://127.0.0.1:{urlsplit(gateway.ready()['url']).port}"
        shop, mailer, grafana = run(tmp_path, keys.replace(SERVER, url)).split()[-3:]
        assert pushed(url, None, "shop.orders") == 401
        assert [pushed(url, shop, queue) for queue in ("shop.orders", "mail")] == [201, 403]
        assert [pushed(url, token, "mail") for token in (mailer, grafana)] == [403, 403]
        said = Cli(tmp_path)("doctor", "--context", "prod")
        assert "it asks for keys" in said.out, said
        assert shop not in gateway.output
    finally:
        gateway.stop()
