"""The configurations of proxies that docs/proxies.md shows are those of deploy/proxies, which tests run."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_page_shows_the_configurations_that_are_run() -> None:
    page = (ROOT / "docs" / "proxies.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r"\[deploy/proxies/([\w.-]+)\]\([^)]*\):\n\n```\w*\n(.*?)```", page, flags=re.DOTALL))
    files = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "deploy" / "proxies").iterdir()}
    assert shown == files
