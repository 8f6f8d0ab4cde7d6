from __future__ import annotations

from typing import Any

import pytest

from ojs_api.schemas import Mode
from ojs_engine.base.errors import OjsError
from ojs_features.schemas.catalogue import Catalogue, mode_of
from support.tables import each
from unit.schemas.samples import draft, record

STRINGS = {"items": {"type": "string"}}


def test_the_newest_version_is_the_one_of_the_highest_precedence() -> None:
    known = Catalogue([record({}, version) for version in ("1.10.0", "1.9.0", "2.0.0-rc.1", "1.2.0")])
    assert [one.version for one in known.versions("test.job")] == ["2.0.0-rc.1", "1.10.0", "1.9.0", "1.2.0"]
    assert known.version("test.job", "1.9").version == "1.9.0"
    assert known.at("urn:ojs:schema:test.job:v1.2.0").version == "1.2.0"


def test_what_was_deleted_is_not_there() -> None:
    known = Catalogue([record({}, "1.0.0"), record({}, "2.0.0", deleted=True)])
    assert [one.version for one in known.all()] == ["1.0.0"]
    with pytest.raises(OjsError, match="was not found"):
        known.at("urn:ojs:schema:test.job:v2.0.0")
    with pytest.raises(OjsError, match="was not found"):
        known.version("test.job", "2")
    with pytest.raises(OjsError, match="was not found"):
        known.versions("another")


@each(
    ("job", "version"),
    [
        ({}, "2.0.0"),
        ({"type": "another"}, None),
        ({"schema": "urn:ojs:schema:test.job:v1.0.0"}, "1.0.0"),
        ({"schema": "urn:ojs:schema:test.job:v1.0.0", "type": "another"}, "1.0.0"),
        ({"schema": "urn:elsewhere"}, None),
        ({"version": "1.0"}, "1.0.0"),
        ({"version": 1}, "1.0.0"),
        ({"version": "3.0.0"}, None),
    ],
)
def test_a_job_is_held_to_the_schema_it_names_or_to_the_newest_of_its_type(job: dict[str, Any], version: str | None) -> None:
    known = Catalogue([record({}, "1.0.0"), record({}, "2.0.0")])
    found = known.of(draft(**job))
    assert (None if found is None else found.version) == version


@pytest.mark.parametrize(
    ("of_type", "of_queue", "named", "mode"),
    [
        (None, None, False, "warn"),
        (None, None, True, "strict"),
        (None, "off", True, "off"),
        (None, "strict", False, "strict"),
        ("off", "strict", True, "off"),
        ("strict", "warn", False, "strict"),
        ("warn", None, True, "warn"),
    ],
)
def test_the_types_mode_comes_before_the_queues(of_type: Mode | None, of_queue: Mode | None, named: bool, mode: Mode) -> None:
    job = draft(schema="urn:x") if named else draft()
    assert mode_of(record({}, mode=of_type), job, of_queue) == mode


def test_a_version_takes_over_what_it_does_not_say_from_the_one_before_it() -> None:
    known = Catalogue([record({}, "1.0.0", mode="strict", compatibility="full"), record({}, "3.0.0", mode="off")])
    new = known.admitted(record({}, "2.0.0", uri="urn:new"), 10)
    assert (new.mode, new.compatibility) == ("strict", "full")
    assert known.admitted(record({}, "2.0.0", uri="urn:new", mode="warn"), 10).mode == "warn"
    assert known.admitted(record({}, "0.1.0", uri="urn:new"), 10).mode is None


def test_a_version_is_held_to_the_one_before_it_in_order_and_not_in_time() -> None:
    known = Catalogue([record(STRINGS, "1.0.0"), record({"items": {"type": "null"}}, "1.5.0", compatibility="none")])
    known.admitted(record(STRINGS, "1.1.0"), 10)
    with pytest.raises(OjsError, match=r"introduces breaking changes compared to 1\.5\.0"):
        known.admitted(record(STRINGS, "1.6.0", compatibility="semver"), 10)


@pytest.mark.parametrize(
    ("version", "uri", "most", "code"),
    [
        ("1", "urn:new", 10, "conflict"),
        ("2.0.0", "urn:ojs:schema:test.job:v1.0.0", 10, "conflict"),
        ("2.0.0", "urn:new", 1, "invalid_request"),
    ],
)
def test_what_is_taken_or_too_much_is_refused(version: str, uri: str, most: int, code: str) -> None:
    with pytest.raises(OjsError) as refused:
        Catalogue([record({}, "1.0.0")]).admitted(record({}, version, uri=uri), most)
    assert refused.value.code == code
