from __future__ import annotations

import pytest

from ojs_engine.base.ids import request_id_of
from ojs_engine.wire.media_types import accepts_media_type
from ojs_gateway.dialects.readers import dialect_of
from support.tables import each

OJS = "application/openjobspec+json"
PLAIN = "application/json"
PROFILED = 'application/openjobspec+json; profile="application/json"'


@each(
    ("accept", "version", "expected"),
    [
        (None, None, OJS),
        ("*/*", None, OJS),
        (OJS, None, OJS),
        (f"{OJS}, {PLAIN}", None, OJS),
        (PLAIN, None, PLAIN),
        ("Application/JSON; q=0.9, text/html", None, PLAIN),
        (OJS, "1.0", PROFILED),
        ("*/*", "1.0", PROFILED),
        (PLAIN, "1.0", PLAIN),
    ],
)
@each("user_agent", [None, "acme/1", "python-httpx/0.27.0"])
def test_content_type_of_answers(user_agent: str | None, accept: str | None, version: str | None, expected: str) -> None:
    assert dialect_of(user_agent, accept, version, OJS).content_type == expected


@pytest.mark.parametrize(
    ("user_agent", "version", "reader"),
    [
        ("Go-http-client/1.1", None, "cli"),
        ("Go-http-client/1.1", "1.0.0-rc.1", "sdk"),
        ("python-httpx/0.27.0", "1.0", "sdk"),
        ("Mozilla/5.0 (X11; Linux x86_64)", None, "ui"),
        ("Mozilla/5.0 (X11; Linux x86_64)", "1.0", "sdk"),
        ("curl/8", None, "standard"),
        (None, None, "standard"),
    ],
)
def test_who_reads_an_answer(user_agent: str | None, version: str | None, reader: str) -> None:
    assert dialect_of(user_agent, OJS, version, OJS).reader == reader


@pytest.mark.parametrize("accept", [None, "*/*", PLAIN])
def test_what_is_written_in_go_is_the_command_line_if_it_asks_for_the_ojs_type(accept: str | None) -> None:
    assert dialect_of("Go-http-client/1.1", accept, None, OJS).reader == "standard"


def test_the_command_line_says_of_every_request_that_its_body_is_ojs() -> None:
    assert dialect_of("Go-http-client/1.1", OJS, None, None).reader == "standard"


def test_the_command_line_follows_events_by_their_media_type() -> None:
    assert dialect_of("Go-http-client/1.1", "text/event-stream", None, None).reader == "cli"
    assert dialect_of("curl/8", "text/event-stream", None, None).reader == "standard"


@each(
    ("version", "supported"),
    [
        (None, True),
        ("1", True),
        ("1.0", True),
        ("1.7", True),
        ("1.0.0", True),
        ("1.0.0-rc.1", True),
        (" 1.0 ", True),
        ("2.0", False),
        ("0.9", False),
        ("10.0", False),
        ("1.", False),
        ("", False),
        ("one", False),
    ],
)
def test_any_version_of_major_1_is_spoken(version: str | None, supported: bool) -> None:
    assert dialect_of(None, None, version, None).supported is supported


@pytest.mark.parametrize(
    ("content_type", "accepted"),
    [
        (OJS, True),
        (PLAIN, True),
        ("application/json; charset=utf-8", True),
        ("Application/JSON", True),
        ("text/json", False),
        ("application/x-www-form-urlencoded", False),
        ("", False),
    ],
)
def test_media_types_of_requests(content_type: str, accepted: bool) -> None:
    assert accepts_media_type(content_type) is accepted


@pytest.mark.parametrize("sent", ["req-mw-test-12345", "a" * 128, "4bf92f3577b34da6a3ce929d0e0e4736", "A/b+c=d@e:f.g_h"])
def test_a_fit_request_id_is_kept(sent: str) -> None:
    assert request_id_of(sent) == sent


@pytest.mark.parametrize("sent", [None, "", "a" * 129, "a b", "a\r\nX: y", '"', "é"])
def test_an_unfit_request_id_is_replaced(sent: str | None) -> None:
    first, second = request_id_of(sent), request_id_of(sent)
    assert first.startswith("req_")
    assert first != second
