"""A key's secret goes where it is sent, and nowhere else."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest

from ojs_nats import Client
from support.cli import Cli
from support.examples import examples
from support.forked import OJS_NATS
from support.guarded import Guarded
from support.processes import family
from support.system import System, environment
from support.waiting import eventually

EVERYTHING: Final = "the-one-key-of-the-environment-that-may-do-everything"
WRONG: Final = "ojs_sk_0123456789ab_" + "0123456789abcdef" * 4


class Told:
    """All that a system has said to anybody who isn't to know a secret, by where."""

    def __init__(self) -> None:
        self.places: dict[str, str] = {}

    def by(self, place: str, text: object) -> None:
        self.places[place] = self.places.get(place, "") + str(text)

    def holding(self, secret: str) -> list[str]:
        return [place for place, text in self.places.items() if secret in text]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("secrets")


@pytest.fixture(scope="module")
def talkative(folder: Path) -> Iterator[Guarded]:
    """A system that logs all that it can, with a key of its environment."""
    program = ("env", *OJS_NATS, "dev")  # it isn't forked: it has a command line of its own
    env = environment(OJS_API_KEY=EVERYTHING)
    with System.started(folder, "--together", "--log-level", "debug", env=env, program=program) as system:
        yield Guarded(system, EVERYTHING)


def command_lines(root: int) -> str:
    """Of a process and all that it has started."""
    found = []
    for pid in {root, *family(root)}:
        try:
            found.append(Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8"))
        except OSError:  # it has ended
            continue
    return "\n".join(found)


async def metrics_of(talkative: Guarded) -> str:
    async with (
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {EVERYTHING}"}) as session,
        session.get(f"{talkative.url}/metrics") as answer,
    ):
        assert answer.status == 200
        return await answer.text()


@pytest.mark.slow
async def test_whichever_way_a_key_is_sent_its_secret_is_told_nowhere(talkative: Guarded, folder: Path) -> None:
    told = Told()
    await talkative.made("ops", "admin")  # the first has to be one that may do everything
    made = await talkative.made("shop", "operator")
    token = made["token"]
    file = folder / "shop.key"
    file.write_text(token)
    status, _, headers = await talkative.ask("POST", "/session", token=token)
    cookie = headers["Set-Cookie"].partition(";")[0]
    secrets = {
        "of the environment": EVERYTHING,
        "of a key": token.rpartition("_")[2],
        "of a session": cookie.rpartition(".")[2],
        "that is wrong": WRONG.rpartition("_")[2],
    }
    assert status == 201

    asked: list[tuple[str, str, object]] = [
        ("GET", "/queues", None),
        ("GET", "/session", None),
        ("POST", "/jobs", {"type": "secret.job", "args": []}),
        ("POST", "/jobs", {"type": "secret job"}),
        ("POST", "/queues/secret/pause", {}),
        ("GET", "/admin/keys", None),
        ("GET", "/nowhere", None),
    ]
    accepted: list[dict[str, Any]] = [
        {"Authorization": f"Bearer {token}"},
        {"Authorization": f"Bearer {EVERYTHING}"},
        {"Cookie": cookie, "Sec_Fetch_Site": "same-origin"},
    ]
    refused: list[dict[str, Any]] = [
        {"Authorization": f"Bearer {WRONG}"},
        {"Authorization": f"Basic {token}"},
        {"Authorization": token},
        {"Cookie": cookie, "Origin": "http://evil.example"},
        {"Cookie": cookie + "x", "Sec_Fetch_Site": "same-origin"},
    ]
    each, turns = examples(len(asked), least=3), itertools.cycle(asked)  # a refusal of an address waits longer and longer
    for sent, several in [(one, asked) for one in accepted] + [(one, [*itertools.islice(turns, each)]) for one in refused]:
        for method, path, body in several:
            status, answer, headers = await talkative.ask(method, path, body, **sent)
            assert headers["Cache-Control"] == "no-store", (path, status)
            told.by("answers", json.dumps(answer))
            told.by("headers of answers", dict(headers))
    for key in (token, WRONG):
        async with Client(talkative.system.nats_url, token=key, retry_for=0) as client:
            try:
                await client.system.stats()
            except Exception as error:  # noqa: BLE001  # whatever it is, it tells nothing
                told.by("errors of the client", f"{error!r} {error} {error.__cause__!r}")

    cli = Cli(folder, talkative.url)
    told.by("the command", cli("keys", "--token-file", str(file)))
    told.by("the command", cli("audit", "--token-file", str(file)))
    for name, key in (("OJS_AUTH_TOKEN", token), ("OJS_API_KEY", EVERYTHING), ("OJS_API_KEY", WRONG)):
        told.by("the command", cli._replace(more={name: key})("queues"))
    told.by("config", cli._replace(more={"OJS_API_KEY": EVERYTHING})("config", "--json"))
    with cli.started("events", "--follow", "--token-file", str(file)) as following:
        told.by("command lines", command_lines(following.pid))
        following.terminate()
        following.wait(60)
    told.by("command lines", command_lines(talkative.system.process.pid))
    told.by("command lines of children", "".join(map(command_lines, talkative.system.children.values())))

    async def refused_is_in_the_audit() -> bool:
        _, page, _ = await talkative.ask("GET", "/admin/audit?event_type=auth.*", token=EVERYTHING)
        return {"auth.login_failure", "auth.permission_denied"} <= {entry["event_type"] for entry in page["entries"]}

    await eventually(refused_is_in_the_audit)
    _, page, _ = await talkative.ask("GET", "/admin/audit", token=EVERYTHING)
    told.by("the audit", json.dumps(page))
    told.by("metrics", await metrics_of(talkative))
    told.by("the log", talkative.system.output)
    for place in ("answers", "the command", "config", "command lines", "the audit", "metrics", "the log"):
        assert told.places[place], place
    assert os.fspath(file) in told.places["command lines"]
    assert os.fspath(talkative.system.data) in told.places["command lines"]
    assert not {what: places for what, secret in secrets.items() if (places := told.holding(secret))}
