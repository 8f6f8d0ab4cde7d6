from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ojs_engine.wire.jobs.priority import parse_priority


@pytest.mark.parametrize(("sent", "meant"), [(7, 7), (5.0, 5), (-100, -100), ("high", 10), ("Low", -10)])
def test_a_priority_is_changed_in_the_words_it_is_pushed_in(sent: Any, meant: int) -> None:
    assert parse_priority(msgspec.json.encode({"priority": sent})) == meant
