"""All pages that fit a question."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ojs_engine.base.errors import OjsError
from ojs_features.workflows.index import WorkflowPage, WorkflowRow, WorkflowsAsk
from ojs_index.asking.messages import MAX_PAGE
from ojs_index.asking.walk import walk


def page(*ids: str, cursor: str | None = None, partial: bool = False) -> WorkflowPage:
    row = WorkflowRow(id="", name="w", kind="chain", state="running", steps=1, steps_completed=0, created_at=1)
    return WorkflowPage(workflows=[replace(row, id=one) for one in ids], total=2, next_cursor=cursor, partial=partial)


class Index:
    """Answers with one page after another."""

    def __init__(self, *pages: WorkflowPage) -> None:
        self.pages = list(pages)
        self.asked: list[WorkflowsAsk] = []

    async def workflows(self, ask: WorkflowsAsk) -> WorkflowPage:
        self.asked.append(ask)
        return self.pages.pop(0)


async def test_it_goes_from_cursor_to_cursor_and_an_empty_page_is_not_the_end() -> None:
    index = Index(page("a", cursor="1"), page(cursor="2"), page("b"))
    found = [row.id async for one in walk(index.workflows, WorkflowsAsk(state="running", cursor="0")) for row in one.workflows]
    assert found == ["a", "b"]
    assert index.asked == [WorkflowsAsk(state="running", limit=MAX_PAGE, cursor=cursor) for cursor in ("0", "1", "2")]


async def test_what_is_not_read_is_not_asked_for() -> None:
    index = Index(page("a", cursor="1"), page("b"))
    async for _ in walk(index.workflows, WorkflowsAsk()):
        break
    assert len(index.asked) == 1


async def test_it_is_refused_as_soon_as_the_index_is_built_anew() -> None:
    pages = walk(Index(page("a", cursor="1"), page("b", partial=True)).workflows, WorkflowsAsk())
    assert (await anext(pages)).workflows
    with pytest.raises(OjsError, match="is being built"):
        await anext(pages)
