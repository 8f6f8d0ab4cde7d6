from __future__ import annotations

import pytest

from ojs_features.plug import only


def test_what_one_feature_gives_is_taken_and_a_second_one_is_refused() -> None:
    assert only([None, "a", None]) == "a"
    assert only([None]) is None
    with pytest.raises(TypeError, match="only one feature"):
        only(["a", None, "b"])
