"""What the new life of a dead letter changes."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Raw

from ojs_engine.base.errors import OjsError
from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_engine.domain.job import Retry
from ojs_engine.domain.transitions import RetryOverride
from ojs_engine.wire.members import encode
from ojs_features.dead_letters.requests import parse_override
from unit.domain.transitions.samples import draft


def call(body: Any) -> Any:
    return parse_override(body if isinstance(body, bytes) else encode(body), DEFAULT_LIMITS)


def refused(body: Any) -> OjsError:
    with pytest.raises(OjsError) as caught:
        call(body)
    return caught.value


def test_overrides_of_a_manual_retry() -> None:
    job = draft(retry=Retry(max_attempts=7, on_exhaustion="dead_letter"))
    assert call(b"")(job) == call({})(job) == call({"override": None})(job) == RetryOverride()
    body = {"override": {"queue": "q", "meta": {"a": 1}, "args": [1], "retry": {"max_attempts": 2}}}
    again = Retry(max_attempts=2, on_exhaustion="dead_letter")
    assert call(body)(job) == RetryOverride(queue="q", meta=Raw(b'{"a":1}'), args=Raw(b"[1]"), retry=again)


@pytest.mark.parametrize(
    ("override", "code"),
    [
        ({"meta": {"a": "x" * 65_536}}, "metadata_too_large"),
        ({"args": ["x" * 1_048_576]}, "envelope_too_large"),
        ({"retry": {"max_attempts": -1}}, "invalid_retry_policy"),
    ],
)
def test_a_bad_override_is_refused(override: dict[str, Any], code: str) -> None:
    assert refused({"override": override}).code == code
