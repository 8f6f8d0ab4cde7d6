"""Checks of a job before it is pushed: whose job passes through which."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Final, cast

import pytest
from msgspec import Raw

from ojs_engine.base.errors import OjsError
from ojs_engine.domain.job import Job
from ojs_engine.domain.members import MEMBERS, not_honoured
from ojs_engine.domain.strict import Strict
from ojs_engine.operations.job_checks import CheckedTypes, FeatureCheck, JobWarning, job_check
from ojs_engine.store.store import Store
from ojs_features.all import FEATURES
from unit.domain.transitions.samples import draft

STORE: Final = cast("Store", object())
"""The fake feature asks nothing of it."""


class Feature:
    """Warns of the jobs that it sees."""

    def __init__(self, *names: str) -> None:
        self._names = frozenset(names)
        self.types = CheckedTypes(self._learn)
        self.learned = 0
        self.check = FeatureCheck(types=lambda _store: self.types, asks=attrgetter("schema"), check=self._check)

    async def _learn(self) -> None:
        self.learned += 1
        self.types.names = self._names

    async def _check(self, _store: Store, job: Job) -> Sequence[JobWarning]:
        return (JobWarning("args", f"seen: {job.type}"),)


@pytest.mark.parametrize(
    ("job", "warnings"),
    [
        (draft(type="plain"), 0),
        (draft(type="checked"), 1),
        (draft(type="plain", schema="urn:a"), 2),
    ],
    ids=["of another type", "of its type", "that asks for it"],
)
async def test_a_feature_sees_the_jobs_of_its_types_and_those_that_ask(job: Job, warnings: int) -> None:
    features = [Feature("checked"), Feature()]
    check = job_check(STORE, [feature.check for feature in features], None, ())
    assert len(await check(job)) == warnings
    assert len(await check(job)) == warnings
    assert [feature.learned for feature in features] == [1, 1], "types are learned once, before the first job"


async def test_in_strict_mode_a_type_that_a_feature_checks_is_registered() -> None:
    check = job_check(STORE, [Feature("checked").check], Strict(), ())
    assert len(await check(draft(type="checked"))) == 1
    with pytest.raises(OjsError) as refused:
        await check(draft(type="plain"))
    assert refused.value.code == "job_type_not_registered"


async def test_without_features_strict_mode_goes_by_its_setting() -> None:
    check = job_check(STORE, (), Strict(("plain",)), ())
    assert await check(draft(type="plain")) == []


async def test_what_nobody_would_do_as_a_job_says_is_refused() -> None:
    check = job_check(STORE, (), None, not_honoured({"limits"}))
    limited = Raw(b'{"key":"api","concurrency":1}')
    assert await check(draft(rate_limit=limited)) == []
    with pytest.raises(OjsError) as refused:
        await check(draft(schema="urn:a"))
    assert (refused.value.code, refused.value.details) == ("unsupported", {"field": "schema"})


def test_each_feature_of_a_member_is_one_that_there_is() -> None:
    named = {member.feature for member in MEMBERS if member.feature}
    assert named <= {feature.name for feature in FEATURES}
    assert len(named) == len(not_honoured(()))
