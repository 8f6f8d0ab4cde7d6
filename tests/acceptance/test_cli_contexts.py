"""Contexts of the command line: which server is asked, with which headers, and who may read them."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from support.cli import Cli
from support.system import System
from support.waiting import until

SECRET = "Bearer s3cr3t"


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """Nothing names a server."""
    return Cli(tmp_path)


class Proxy:
    """Something that speaks HTTP and answers all alike."""

    def __init__(self, status: int, body: bytes) -> None:
        self.seen: list[dict[str, str]] = []
        """The headers of each request."""
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                proxy.seen.append(dict(self.headers))
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    @classmethod
    @contextmanager
    def started(cls, status: int, body: bytes) -> Iterator[Proxy]:
        proxy = cls(status, body)
        thread = Thread(target=proxy._server.serve_forever)
        thread.start()
        try:
            yield proxy
        finally:
            proxy._server.shutdown()
            thread.join()
            proxy._server.server_close()


@pytest.mark.slow
def test_a_context_names_a_server(cli: Cli, system: System) -> None:
    assert cli("queues", "--server", "http://127.0.0.1:1").code == 3
    cli.asked("context", "set", "here", "--server", system.url)
    assert cli.json("queues") == []
    cli.asked("context", "set", "gone", "--server", "http://127.0.0.1:1")
    assert cli.json("queues") == []
    assert cli("queues", "--context", "gone").code == 3
    cli.asked("context", "use", "gone")
    said = cli("queues")
    assert said.code == 3
    assert "(from context gone)" in said.err
    assert cli.json("queues", "--context", "here") == []
    assert cli("queues", "--context", "here", "--server", system.url).code == 2
    assert cli._replace(url=system.url).json("queues") == []
    assert "OJS_URL is set" in cli._replace(url=system.url)("context", "use", "here").err


@pytest.mark.slow
def test_contexts_are_kept_for_their_owner_alone_and_shown_masked(cli: Cli) -> None:
    cli.asked("context", "set", "prod", "--server", "https://me:pa55@jobs.example.org", "--header", f"Authorization: {SECRET}")
    file = cli.folder / "ojs-nats" / "contexts.toml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert SECRET in file.read_text(encoding="utf-8")
    file.chmod(0o644)
    cli.asked("context", "set", "prod", "--header", "X-Tenant: acme")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    told = [cli.asked("context", *words.split()) for words in ("list", "show", "show prod --json", "--json", "use prod")]
    assert not [one for one in told if "s3cr3t" in one or "pa55" in one]
    assert cli.json("context", "show")["headers"] == {"Authorization": "***", "X-Tenant": "***"}
    assert cli.json("context", "set", "prod", "--header", "X-Tenant:")["headers"] == {"Authorization": "***"}
    for words in ("queues", "doctor --nats me:pa55@127.0.0.1:1", "doctor --nats me:pa55@127.0.0.1:1 --json"):
        said = cli(*words.split(), "--server", "http://me:pa55@127.0.0.1:1")
        assert said.code == 3
        assert "pa55" not in said.out + said.err
    cli.asked("context", "delete", "prod")
    assert cli("context").err.startswith("No contexts yet")
    assert cli("context", "show").code == 2
    assert cli("context", "use", "prod").code == 2


@pytest.mark.slow
def test_a_context_may_be_a_nats_server(cli: Cli, system: System) -> None:
    cli.asked("context", "set", "nats", "--server", system.nats_url)
    assert cli.json("get", cli.asked("push", "t").strip())["state"] == "available"
    with cli.started("events", "--follow", "--limit", "1") as following:

        def pushed_until_it_has_heard() -> bool:
            return bool(cli.asked("push", "t")) and following.poll() is not None

        until(pushed_until_it_has_heard)
        assert following.returncode == 0
    gone = cli("queues", "--server", "nats://127.0.0.1:1")
    assert (gone.code, gone.out, len(gone.err.splitlines())) == (3, "", 1)
    cli.asked("context", "set", "nats", "--header", "A: b")
    assert cli("queues").code == 2


def test_a_file_of_contexts_that_is_broken_says_so(cli: Cli) -> None:
    file = cli.folder / "ojs-nats" / "contexts.toml"
    file.parent.mkdir()
    file.write_text("[contexts.prod]\nserver = 5\n", encoding="utf-8")
    said = cli("queues")
    assert said.code == 2
    assert str(file) in said.err
    assert cli("context", "set", "new").code == 2


def test_the_headers_of_a_context_go_with_every_request_and_to_nobody_else(cli: Cli) -> None:
    with Proxy.started(200, b'{"queues": []}') as proxy:
        cli.asked("context", "set", "prod", "--server", proxy.url, "--header", f"Authorization: {SECRET}")
        cli("queues")
        assert [seen["Authorization"] for seen in proxy.seen] == [SECRET] * len(proxy.seen)
        asked = len(proxy.seen)
        assert asked
        cli("queues", "--server", proxy.url)
        assert not [seen for seen in proxy.seen[asked:] if "Authorization" in seen]


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (401, b"who are you?", "--token-file"),
        (404, b"<html>", "is that an OJS server?"),
        (200, b"<html>", "is the address right?"),
    ],
)
def test_who_is_no_ojs_server_is_told_of(cli: Cli, status: int, body: bytes, words: str) -> None:
    with Proxy.started(status, body) as proxy:
        said = cli("list", "--server", proxy.url)
    assert (said.code, said.out) == (1, "")
    assert words in said.err
    assert "Traceback" not in said.err
