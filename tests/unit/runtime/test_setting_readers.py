from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from ojs_runtime import setting_readers
from support.tables import each


@each(
    ("read", "written", "value"),
    [
        (setting_readers.text, " n1 ", "n1"),
        (setting_readers.path, "~/x", Path.home() / "x"),
        (setting_readers.boolean, True, True),
        (setting_readers.boolean, "Yes", True),
        (setting_readers.boolean, "0", False),
        (setting_readers.boolean, "off", False),
        (setting_readers.choice("json", "console"), "JSON", "json"),
        (setting_readers.integer(0, 65535), "65535", 65535),
        (setting_readers.integer(0, 65535), 0, 0),
        (setting_readers.integer(0, 10_000_000), "1_048_576", 1_048_576),
        (setting_readers.seconds(0, 60), "0.5", 0.5),
        (setting_readers.seconds(0, 60), 30, 30.0),
        (setting_readers.health_port, "off", None),
        (setting_readers.health_port, False, None),
        (setting_readers.health_port, "0", 0),
        (setting_readers.nats_urls, "nats://h:4222", "nats://h:4222"),
        (setting_readers.nats_urls, "h1:4222, tls://u:p@h2", "nats://h1:4222,tls://u:p@h2"),
        (setting_readers.nats_urls, "h1, h2?inbox_prefix=_INBOX_a.b", "nats://h1,nats://h2?inbox_prefix=_INBOX_a.b"),
        (setting_readers.other_nats_urls, "off", None),
        (setting_readers.other_nats_urls, False, None),
        (setting_readers.other_nats_urls, "u:p@h", "nats://u:p@h"),
    ],
)
def test_a_value_is_read(read: setting_readers.Reader, written: object, value: Any) -> None:
    assert read(written) == value


@each(
    ("read", "written", "words"),
    [
        (setting_readers.text, "  ", "at least one character"),
        (setting_readers.text, 3, "3 is not a text"),
        (setting_readers.boolean, "maybe", "'maybe' is neither true nor false"),
        (setting_readers.boolean, 1.0, "neither true nor false"),
        (setting_readers.choice("json", "console"), "xml", "'xml' is none of json, console"),
        (setting_readers.choice("json"), 1, "1 is none of json"),
        (setting_readers.integer(0, 65535), "65536", "'65536' is not a whole number from 0 to 65535"),
        (setting_readers.integer(0, 65535), "8o80", "not a whole number"),
        (setting_readers.integer(0, 65535), True, "not a whole number"),
        (setting_readers.integer(0, 65535), 80.0, "not a whole number"),
        (setting_readers.seconds(0, 60), "nan", "not a number of seconds from 0 to 60"),
        (setting_readers.seconds(0, 60), "soon", "not a number of seconds"),
        (setting_readers.seconds(0, 60), -1, "not a number of seconds"),
        (setting_readers.health_port, "on", "65535, or off"),
        (setting_readers.nats_urls, "http://h", "'http://h' is not a URL like nats://"),
        (setting_readers.nats_urls, "nats://h:port", "not a URL"),
        (setting_readers.nats_urls, " , ", "not a URL"),
        (setting_readers.nats_urls, "nats://h?inbox_prefix=ojs.api", "may end in ?inbox_prefix=_INBOX…"),
        (setting_readers.nats_urls, "nats://h?inbox_prefix=_INBOX.*", "may end in ?inbox_prefix=_INBOX…"),
        (setting_readers.nats_urls, "nats://h?inbox_prefix=_INBOX_a,nats://g", "may end in ?inbox_prefix=_INBOX…"),
        (setting_readers.nats_urls, "nats://u:p@h?tls=true", "'nats://***@h?tls=true' may end in"),
        (setting_readers.integer(0, 1), "x" * 200, "x… is not"),
    ],
)
def test_a_value_is_refused_in_words(read: setting_readers.Reader, written: object, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        read(written)


@each("value", [True, 8080, 30.0, 0.25, "json", ("a.b", "c.*"), Path("data"), None])
def test_what_is_written_is_read_again(value: Any) -> None:
    read_back: dict[type, setting_readers.Reader] = {
        bool: setting_readers.boolean,
        int: setting_readers.integer(0, 65535),
        float: setting_readers.seconds(0, 60),
        str: setting_readers.text,
        tuple: setting_readers.job_types,
        type(Path()): setting_readers.path,
        type(None): setting_readers.health_port,
    }
    assert read_back[type(value)](setting_readers.written(value)) == value


def test_a_refused_url_keeps_its_password() -> None:
    with pytest.raises(ValueError, match="URL") as refusal:
        setting_readers.nats_urls("amqp://user:secret@host")
    assert "secret" not in str(refusal.value)


def test_origins_are_read_as_browsers_write_them() -> None:
    assert setting_readers.origins("https://UI.example.com/, http://a:80,http://[::1]:3000") == (
        "https://ui.example.com",
        "http://a",
        "http://[::1]:3000",
    )
    for wrong in ("*", "null", "ui.example.com", "https://a/path", "https://a:b"):
        with pytest.raises(ValueError, match="is not an origin like"):
            setting_readers.origins(wrong)


def test_host_names_have_no_ports() -> None:
    assert setting_readers.host_names(["Jobs.example.com", "[::1]", "*"]) == ("jobs.example.com", "::1", "*")
    for wrong in ("a:80", "http://a", "a b"):
        with pytest.raises(ValueError, match="without a port"):
            setting_readers.host_names(wrong)
