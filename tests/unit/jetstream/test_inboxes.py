"""Which reply subjects are answered on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from ojs_engine.jetstream.connection import Reply
from ojs_engine.jetstream.inboxes import Inboxes
from ojs_engine.telemetry import metrics
from support.tables import each


def asked(reply: str | bytes) -> Reply:
    return Reply(b"ojs.api.createJob.email", reply if isinstance(reply, bytes) else reply.encode(), b"", None)


@pytest.mark.parametrize(
    "reply",
    [
        "_INBOX.Yk3sJTDNOcLDBkGoWQbGJx",
        "_INBOX.Yk3sJTDNOcLDBkGoWQbGJx.1",
        "_INBOX_shop.a.b",
        "_INBOX-shop.a",
        "_R_.n0dZe1.SFxMEj",
    ],
)
def test_inboxes_of_clients_are_answered_on(reply: str) -> None:
    assert Inboxes().admit(asked(reply))


@each(
    "reply",
    [
        "$KV.ojs.job.x",
        "$JS.API.STREAM.DELETE.KV_ojs",
        "ojs.api.pauseQueue.payments",
        "ojs._INBOX.a",
        "_inbox.a",
        "INBOX.a",
        "_R_",
        "_INBOX.*",
        "_INBOX.a*",
        "_INBOX.>",
        "_INBOX.a.",
        "_INBOX..a",
        "_INBOX.a b",
        "_INBOX.a\r\nPUB ojs.ready.x 0",
        "_INBOX.a\x00",
        "_INBOX.\N{LATIN SMALL LETTER E WITH ACUTE}",
        b"_INBOX.\xff",
    ],
)
def test_nothing_else_is_answered_on_and_each_is_counted(reply: str | bytes) -> None:
    before = metrics.REPLIES_REFUSED.value
    assert not Inboxes().admit(asked(reply))
    assert metrics.REPLIES_REFUSED.value == before + 1


def test_a_request_without_a_reply_subject_is_nobodys_mistake() -> None:
    before = metrics.REPLIES_REFUSED.value
    assert not Inboxes().admit(asked(""))
    assert metrics.REPLIES_REFUSED.value == before


def test_a_flood_of_refusals_is_one_line_in_the_log_which_a_subject_cant_forge() -> None:
    inboxes = Inboxes()
    with capture_logs() as lines:
        for _ in range(1_000):
            inboxes.admit(asked("a\x1b[2J\n" + "x" * 1_000))
    [line] = lines
    assert line["event"] == "a request whose reply subject is no inbox is not carried out"
    assert line["subject"] == "ojs.api.createJob.email"
    assert line["reply"].startswith("a\\x1b[2J\\nxxx")
    assert len(line["reply"]) < 120


SIGNS = st.sampled_from("ojs.$_INBOX*> a")


@given(st.text(SIGNS, max_size=20))
def test_no_answer_goes_to_a_subject_of_the_server(subject: str) -> None:
    if Inboxes().admit(asked(subject)):
        assert not subject.startswith(("$", "ojs."))
        assert not set(subject) & set("*> ")
        assert "" not in subject.split(".")


def test_other_prefixes_take_the_place_of_the_default() -> None:
    inboxes = Inboxes(("_INBOX_shop.", "my.inbox."))
    assert inboxes.admit(asked("_INBOX_shop.a"))
    assert inboxes.admit(asked("my.inbox.a"))
    assert not inboxes.admit(asked("my.inboxes"))
    assert not inboxes.admit(asked("_INBOX.a"))
