"""Signatures of webhooks: what the server signs is taken, and nothing that a stranger sends raises."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ojs_features.webhooks.rules import signature
from ojs_nats import verify_webhook
from support.tables import each

PAGE: Final = Path(__file__).parents[3] / "docs" / "webhooks.md"
NOW: Final = 1_800_000_000
BODY: Final = '{"é": "\u2028"}'
SECRET: Final = "new-secret"


class Delivery(NamedTuple):
    timestamp: str
    signatures: str
    fits: bool
    body: str = BODY


def deliveries(now: int) -> list[Delivery]:
    """Return what a receiver may be sent at this time (Unix seconds), and whether it is the server's."""

    def signed(by: str, at: object = now, body: str = BODY) -> str:
        text = f"{at}.{body}".encode()
        return "sha256=" + hmac.new(by.encode(), text, hashlib.sha256).hexdigest()

    right, old, at = signed(SECRET), signed("old-secret"), str(now)
    return [
        Delivery(at, right, fits=True),
        Delivery(f" {at} ", right, fits=True),
        Delivery(at, f"{right},{old}", fits=True),
        Delivery(at, f"{old}, {right}", fits=True),
        Delivery(at, f"{old},\t{right} ", fits=True),
        Delivery(at, signed("", at), fits=False),
        Delivery(at, old, fits=False),
        Delivery(at, right, fits=False, body="{}"),
        Delivery(at, right[:-1], fits=False),
        Delivery(at, right.removeprefix("sha256="), fits=False),
        Delivery(at, "", fits=False),
        Delivery(at, ",,,", fits=False),
        Delivery(at, "sha256=é", fits=False),
        Delivery(at, "sha256=" + "é" * 64, fits=False),
        Delivery(at, "sha256=\x00", fits=False),
        *(
            Delivery(str(odd), signed(SECRET, odd), fits=False)
            for odd in ("", "abc", "nan", "1.5", "-1", "1e9", "٣", "9" * 30, "9" * 5_000, now - 301 - 60, now + 301 + 60)
        ),
    ]


@each("delivery", deliveries(NOW))
def test_the_client_takes_what_the_server_signed_and_nothing_else(delivery: Delivery) -> None:
    body = delivery.body.encode()
    for encoded in (delivery.signatures, delivery.signatures.encode()):
        found = verify_webhook(SECRET, body, signature=encoded, timestamp=delivery.timestamp, now=NOW)
        assert found is delivery.fits, delivery


def test_the_client_takes_the_header_that_the_server_makes() -> None:
    sent = signature((SECRET, "old-secret"), NOW, b"{}")
    for secret in (SECRET, "old-secret"):
        assert verify_webhook(secret, b"{}", signature=sent, timestamp=str(NOW), now=NOW)
    assert not verify_webhook(SECRET, b"{}", signature=None, timestamp=str(NOW), now=NOW)
    assert not verify_webhook(SECRET, b"{}", signature=sent, timestamp=None, now=NOW)
    assert not verify_webhook(SECRET, b"{}", signature=sent, timestamp=str(NOW), now=NOW + 301)


@given(st.text() | st.binary(), st.text() | st.binary(), st.binary())
def test_nothing_raises(sent: str | bytes, at: str | bytes, body: bytes) -> None:
    assert verify_webhook(SECRET, body, signature=sent, timestamp=at) is False


def snippets(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def cases(now: int) -> str:
    return json.dumps([[one.timestamp, one.body, one.signatures] for one in deliveries(now)])


def the_clock() -> int:
    return int(time.time())


def by_python(_: Path, now: int) -> list[bool]:
    made: dict[str, Any] = {}
    exec(snippets("python")[-1], made)
    verified: Callable[[str, str, bytes, str], bool] = made["verified"]
    return [verified(SECRET, one.timestamp, one.body.encode(), one.signatures) for one in deliveries(now)]


def ran(command: list[str], now: int) -> list[bool]:
    said = subprocess.run(command, input=cases(now), capture_output=True, text=True, timeout=120, check=False)
    assert said.returncode == 0, said.stderr
    found: list[bool] = json.loads(said.stdout)
    return found


def by_javascript(folder: Path, now: int) -> list[bool]:
    read = "const cases = JSON.parse(require('node:fs').readFileSync(0, 'utf8'));\n"
    told = f"console.log(JSON.stringify(cases.map(([at, body, sent]) => verified('{SECRET}', at, Buffer.from(body), sent))));"
    file = folder / "verify.cjs"
    file.write_text(snippets("javascript")[-1] + read + told, encoding="utf-8")
    return ran(["node", str(file)], now)


GO: Final = """package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	var cases [][3]string
	json.NewDecoder(os.Stdin).Decode(&cases)
	found := []bool{}
	for _, one := range cases {
		found = append(found, verified("SECRET", one[0], []byte(one[1]), one[2]))
	}
	json.NewEncoder(os.Stdout).Encode(found)
}

"""


def by_go(folder: Path, now: int) -> list[bool]:
    (folder / "main.go").write_text(GO.replace("SECRET", SECRET) + snippets("go")[-1], encoding="utf-8")
    return ran(["go", "run", str(folder / "main.go")], now)


def by_ruby(folder: Path, now: int) -> list[bool]:
    read = 'require "json"\ncases = JSON.parse(STDIN.read)\n'
    told = f'puts JSON.generate(cases.map {{ |at, body, sent| verified("{SECRET}", at, body, sent) }})\n'
    file = folder / "verify.rb"
    file.write_text(snippets("ruby")[-1] + read + told, encoding="utf-8")
    return ran(["ruby", str(file)], now)


def test_the_python_of_the_page_decides_alike(tmp_path: Path) -> None:
    now = the_clock()
    assert by_python(tmp_path, now) == [one.fits for one in deliveries(now)]


@pytest.mark.slow
@pytest.mark.parametrize(("program", "verify"), [("node", by_javascript), ("go", by_go), ("ruby", by_ruby)])
def test_the_other_languages_of_the_page_decide_alike(
    program: str, verify: Callable[[Path, int], list[bool]], tmp_path: Path
) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"there is no {program} here")
    now = the_clock()
    assert verify(tmp_path, now) == [one.fits for one in deliveries(now)]
