from __future__ import annotations

from pathlib import Path

from ojs_features.startup import OPTIONS as OF_FEATURES
from ojs_runtime.settings import OPTIONS
from script.pages.settings import reference

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "settings.md"


def test_the_page_in_the_documentation_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference(), "run: python -m script.pages.settings > docs/reference/settings.md"


def test_every_setting_has_a_row() -> None:
    rows = [line for line in reference().splitlines() if line.startswith("| `--")]
    assert [row.split("`")[1] for row in rows] == [option.flag for option in (*OPTIONS, *OF_FEATURES)]
    assert all(row.count(" | ") == 5 for row in rows)
