"""A key that no header can carry is refused where it is given, and isn't repeated in the message."""

from __future__ import annotations

from pathlib import Path

import pytest

from ojs_nats import App, Client
from ojs_nats._connect import authorized
from support.cli import Cli
from support.tables import each

ODD = ["ojs_one\nX-Other: two", "ojs one", "\N{LEFT DOUBLE QUOTATION MARK}ojs_one\N{RIGHT DOUBLE QUOTATION MARK}", "ojs\x00one"]


@each("key", ODD)
def test_an_odd_key_is_a_sentence_without_the_key(key: str) -> None:
    for made in (lambda: Client("http://127.0.0.1:1", token=key), lambda: App("http://127.0.0.1:1", token=key)):
        with pytest.raises(ValueError, match="the key in token is not one word of plain characters") as refused:
            made()
        assert "ojs" not in str(refused.value).replace("OJS", "")


def test_blanks_around_a_key_are_left_out() -> None:
    assert authorized(None, " ojs_one\r\n") == {"Authorization": "Bearer ojs_one"}


def test_the_command_line_says_so_in_one_line(tmp_path: Path) -> None:
    said = Cli(tmp_path, "http://127.0.0.1:1", {"OJS_AUTH_TOKEN": ODD[0]})("queues")
    assert (said.code, said.out) == (2, "")
    assert "the key in OJS_AUTH_TOKEN is not one word" in said.err
    assert len(said.err.splitlines()) == 1
    assert "ojs_one" not in said.err
