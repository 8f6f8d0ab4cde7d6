"""Answers as they are written: in their reader's dialect, without what their reader may not see."""

from __future__ import annotations

from ojs_engine.api.call import Call, Response
from ojs_gateway.dialects.layer import answer_body, redacted_body


def shown(call: Call, answer: Response) -> bytes:
    """The body of an answer."""
    hides = call.hides or (answer.of_others and call.hides_others)
    return (redacted_body if hides else answer_body)(answer.answer, call.dialect.reader)
