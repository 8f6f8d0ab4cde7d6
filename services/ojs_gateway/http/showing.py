"""Answers as they are written: in their reader's dialect, without what their reader may not see."""

from __future__ import annotations

from ojs_core.wire.dialects.layer import answer_body
from ojs_core.wire.redaction import redacted
from ojs_gateway.http.call import Call, Response


def shown(call: Call, answer: Response) -> bytes:
    """The body of an answer."""
    body = answer_body(answer.answer, call.dialect.reader)
    return redacted(body) if call.hides or (answer.of_others and call.hides_others) else body
