"""What a worker can run: ranges of versions, and jobs without one (ojs-job-versioning §8)."""

from __future__ import annotations

import pytest

from ojs_engine.base.errors import OjsError
from ojs_engine.domain.handlers import Handled, Handler, parse_range
from support.tables import each


def handled(versions: str) -> Handled:
    return Handled([Handler("invoice.generate", versions)])


@pytest.mark.parametrize(
    ("versions", "inside", "outside"),
    [
        ("*", ["1.0", 2, "2.0.0-rc.1", "99.7"], []),
        ("2.0", ["2.0", 2, "2", "2.0.0"], ["2.1", "1.9", 3]),
        (">=1.0 <3.0", ["1.0", 1, "2.9", "2.99.1"], ["0.9", "3.0", 3, "1.0-beta"]),
        (">=1.0, <2.0", ["1.0", "1.9"], ["2.0", "0.1"]),
        (">=2.0", ["2.0", "7.1"], ["1.9"]),
        ("> 1.0 <= 2.0", ["1.1", "2.0"], ["1.0", "2.1"]),
        ("=1.5", ["1.5"], ["1.6"]),
    ],
)
def test_a_range_takes_versions_in_whatever_way_they_are_written(
    versions: str, inside: list[str | int], outside: list[str | int]
) -> None:
    worker = handled(versions)
    assert [version for version in inside if not worker.runs("invoice.generate", version)] == []
    assert [version for version in outside if worker.runs("invoice.generate", version)] == []


@each("text", ["", " ", "latest", ">=", ">=1.0 <", "^1.0", "~1", "1.0 || 2.0", "1.x", "1" * 300])
def test_what_is_no_range_is_refused_by_its_name(text: str) -> None:
    with pytest.raises(OjsError) as refused:
        parse_range(text, "handlers[3].versions")
    assert refused.value.details["field"] == "handlers[3].versions"
    assert ">=1.0 <3.0" in refused.value.message


@pytest.mark.parametrize("versions", ["*", "2.0", ">=5"])
def test_a_job_without_a_version_is_for_whoever_handles_its_type(versions: str) -> None:
    assert handled(versions).runs("invoice.generate", None)
    assert not handled(versions).runs("email.send", None)
    assert not handled(versions).runs("email.send", "2.0")


def test_a_type_may_be_handled_in_several_ranges() -> None:
    worker = Handled([Handler("a", "1.0"), Handler("a", ">=3.0"), Handler("b")])
    assert [version for version in ("1.0", "2.0", "3.0", "4.1") if worker.runs("a", version)] == ["1.0", "3.0", "4.1"]
    assert worker.runs("b", "2.0")


def test_a_version_that_somebody_wrote_by_hand_is_none() -> None:
    assert handled("2.0").runs("invoice.generate", "newest")
