"""Jobs are found by each text of the table that the index has labels of."""

from __future__ import annotations

from typing import Any

from ojs_engine.domain.members import LABELLED, FoundBy
from ojs_index.asking.messages import JobsAsk
from ojs_index.reading import jobs
from support.plain_members import OTHER, SENT, stored
from support.tables import each
from unit.index.samples import fresh, job, seen


def asked(by: FoundBy, text: str) -> JobsAsk:
    texts: dict[str, Any] = {by.name: text}
    return JobsAsk(**texts)


@each("by", LABELLED)
def test_a_job_is_found_by_its_text_and_by_no_other(by: FoundBy) -> None:
    model = fresh()
    model.apply([seen(1, job("ours", **stored(SENT))), seen(2, job("theirs", **stored(OTHER))), seen(3, job("none"))])

    def found(text: str) -> list[str]:
        return [row.id for row in jobs.jobs(model, asked(by, text)).jobs]

    assert found("payments") == ["ours"]
    assert found("theirs") == ["theirs"]
    assert found("nobody") == []


@each("by", LABELLED)
def test_no_text_is_found_under_the_name_of_another_one(by: FoundBy) -> None:
    model = fresh()
    others = {name: value for name, value in stored(SENT).items() if name != by.field}
    model.apply([seen(1, job("a", **others))])
    assert jobs.jobs(model, asked(by, "payments")).jobs == []
