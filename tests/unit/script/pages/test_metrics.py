from __future__ import annotations

from pathlib import Path

from ojs_engine.telemetry import metrics
from script.pages.metrics import reference

PAGE = Path(__file__).parents[4] / "docs" / "metrics.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference(), "run: python -m script.pages.metrics > docs/metrics.md"


def test_the_page_has_every_metric() -> None:
    rows = [line.split("`")[1] for line in reference().splitlines() if line.startswith("| `")]
    assert sorted(row.removesuffix("_total") for row in rows) == sorted(
        next(iter(listed.family.describe())).name for listed in (*metrics.FAMILIES, *metrics.OF_GATEWAY, *metrics.OF_PROJECTOR)
    )
