from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ojs_engine.base.errors import OjsError
from ojs_engine.wire.jobs.priority import parse_priority
from support.tables import each


@pytest.mark.parametrize(("sent", "meant"), [(7, 7), (5.0, 5), (-100, -100), ("high", 10), ("Low", -10)])
def test_a_priority_is_changed_in_the_words_it_is_pushed_in(sent: Any, meant: int) -> None:
    assert parse_priority(msgspec.json.encode({"priority": sent})) == meant


@each("sent", [None, True, 1.5, 101, "5", "urgent", [], {}])
def test_what_is_no_priority_is_refused_in_words_for_people(sent: Any) -> None:
    with pytest.raises(OjsError) as caught:
        parse_priority(msgspec.json.encode({"priority": sent}))
    assert caught.value.details["field"] == "priority"
    assert "integer from -100 to 100" in caught.value.message
