from __future__ import annotations

from itertools import pairwise

import pytest

from ojs_engine.base.errors import OjsError
from ojs_engine.domain.versions import parse_version
from support.tables import each


def test_versions_are_in_the_order_of_semver() -> None:
    pre_releases = ["1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-rc.2", "1.0.0-rc.11"]
    ordered = ["0.9", *pre_releases, "1", "1.2", "1.10", "2.0.1", "10"]
    found = [parse_version(text) for text in ordered]
    assert all(lower < higher for lower, higher in pairwise(found))


@pytest.mark.parametrize("same", ["2", "2.0", "2.0.0", "02"])
def test_what_is_left_out_is_zero(same: str) -> None:
    assert parse_version(same) == parse_version("2.0.0")
    assert parse_version(same).token == "2.0.0"


def test_different_versions_have_different_tokens() -> None:
    texts = ["1.0.0", "1.0.1", "1.0.0-rc.1", "1.0.0-rc.1.1", "1.0.0-1", "1.0.0-a1"]
    assert len({parse_version(text).token for text in texts}) == len(texts)


@each("text", ["", "v1", "1.", "1.0.0.0", "1.0.0-", "1.0.0-a..b", "latest", "1 ", "-1", "1.0.0+build", "9" * 10])
def test_what_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(OjsError, match="version must be a version such as") as refused:
        parse_version(text)
    assert refused.value.details["field"] == "version"
