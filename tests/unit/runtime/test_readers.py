from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from ojs_nats import readers
from ojs_nats.masking import mask


@pytest.mark.parametrize(
    ("read", "written", "value"),
    [
        (readers.text, " n1 ", "n1"),
        (readers.path, "~/x", Path.home() / "x"),
        (readers.boolean, True, True),
        (readers.boolean, "Yes", True),
        (readers.boolean, "0", False),
        (readers.boolean, "off", False),
        (readers.choice("json", "console"), "JSON", "json"),
        (readers.integer(0, 65535), "65535", 65535),
        (readers.integer(0, 65535), 0, 0),
        (readers.integer(0, 10_000_000), "1_048_576", 1_048_576),
        (readers.seconds(0, 60), "0.5", 0.5),
        (readers.seconds(0, 60), 30, 30.0),
        (readers.health_port, "off", None),
        (readers.health_port, False, None),
        (readers.health_port, "0", 0),
        (readers.import_paths, "a.b:c, d:e.f", ("a.b:c", "d:e.f")),
        (readers.import_paths, ["a:b"], ("a:b",)),
        (readers.import_paths, "", ()),
        (readers.nats_urls, "nats://h:4222", "nats://h:4222"),
        (readers.nats_urls, "h1:4222, tls://u:p@h2", "nats://h1:4222,tls://u:p@h2"),
    ],
)
def test_a_value_is_read(read: readers.Reader, written: object, value: Any) -> None:
    assert read(written) == value


@pytest.mark.parametrize(
    ("read", "written", "words"),
    [
        (readers.text, "  ", "at least one character"),
        (readers.text, 3, "3 is not a text"),
        (readers.boolean, "maybe", "'maybe' is neither true nor false"),
        (readers.boolean, 1.0, "neither true nor false"),
        (readers.choice("json", "console"), "xml", "'xml' is none of json, console"),
        (readers.choice("json"), 1, "1 is none of json"),
        (readers.integer(0, 65535), "65536", "'65536' is not a whole number from 0 to 65535"),
        (readers.integer(0, 65535), "8o80", "not a whole number"),
        (readers.integer(0, 65535), True, "not a whole number"),
        (readers.integer(0, 65535), 80.0, "not a whole number"),
        (readers.seconds(0, 60), "nan", "not a number of seconds from 0 to 60"),
        (readers.seconds(0, 60), "soon", "not a number of seconds"),
        (readers.seconds(0, 60), -1, "not a number of seconds"),
        (readers.health_port, "on", "65535, or off"),
        (readers.import_paths, "a.b.c", "'a.b.c' is not an import path like package.module:name"),
        (readers.import_paths, [1], "not a comma list"),
        (readers.nats_urls, "http://h", "'http://h' is not a URL like nats://"),
        (readers.nats_urls, "nats://h:port", "not a URL"),
        (readers.nats_urls, " , ", "not a URL"),
        (readers.integer(0, 1), "x" * 200, "x… is not"),
    ],
)
def test_a_value_is_refused_in_words(read: readers.Reader, written: object, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        read(written)


@pytest.mark.parametrize("value", [True, 8080, 30.0, 0.25, "json", ("a:b", "c:d"), Path("data"), None])
def test_what_is_written_is_read_again(value: Any) -> None:
    read_back: dict[type, readers.Reader] = {
        bool: readers.boolean,
        int: readers.integer(0, 65535),
        float: readers.seconds(0, 60),
        str: readers.text,
        tuple: readers.import_paths,
        type(Path()): readers.path,
        type(None): readers.health_port,
    }
    assert read_back[type(value)](readers.written(value)) == value


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("nats://user:secret@host:4222", "nats://***@host:4222"),
        ("nats://token@h1,tls://a:p@ss@h2", "nats://***@h1,tls://***@h2"),
        ("connecting to nats://u:p@h failed", "connecting to nats://***@h failed"),
        ("mail ada@example.org", "mail ada@example.org"),
        ("http://h/path@x", "http://h/path@x"),
    ],
)
def test_user_info_of_urls_is_masked(text: str, masked: str) -> None:
    assert mask(text) == masked


def test_a_refused_url_keeps_its_password() -> None:
    with pytest.raises(ValueError, match="URL") as refusal:
        readers.nats_urls("amqp://user:secret@host")
    assert "secret" not in str(refusal.value)
