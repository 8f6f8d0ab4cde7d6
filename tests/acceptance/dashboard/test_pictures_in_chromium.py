"""The pictures of the documents: they can be made, they are small, and the documents name those that there are.

`script/pictures` makes them anew: `OJS_PICTURES=FOLDER` says where they go.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio

from acceptance.dashboard.conftest import OpenScreen
from acceptance.dashboard.shop import Shop, beat
from support.system import System

ROOT: Final = Path(__file__).parents[3]
PICTURES: Final = ROOT / "docs/pictures"
THEMES: Final = ("light", "dark")
MOST_BYTES: Final = 60_000
QUALITY: Final = 40
HEIGHT: Final = 760

SHOWN: Final = {
    "overview": ("/", ["billing is paused", "Jobs a second", "Waiting"]),
    "jobs": ("/jobs", ["billing.charge", "Cancel all that match"]),
    "job": ("/jobs/{failed}", ["550 5.1.1", "Timeline", "Stack trace"]),
    "workflow": ("/workflows/{order}", ["Graph", "order.pack", "3 of 7"]),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shop(site: System) -> Shop:
    return await Shop.made(site)


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", SHOWN)
async def test_a_picture_is_made_in_light_and_dark(screen: OpenScreen, site: System, shop: Shop, name: str) -> None:
    path, texts = SHOWN[name]
    tab = await screen()
    beat(site)
    await tab.follow(path.format(**shop._asdict()))
    for theme in THEMES:
        await tab.looked_at(dark=theme == "dark", height=HEIGHT)
        await tab.shows(*texts)
        await tab.hides("Connecting to the events again")
        picture = await tab.page.picture(QUALITY)
        assert picture[8:12] == b"WEBP"
        assert len(picture) <= MOST_BYTES, f"{name} in {theme} takes {len(picture):,} bytes"
        kept(f"{name}-{theme}.webp", picture)


def kept(name: str, picture: bytes) -> None:
    """Put a picture where pictures are asked for, if they are."""
    if folder := os.environ.get("OJS_PICTURES"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        Path(folder, name).write_bytes(picture)


def test_documents_name_pictures_that_there_are_and_each_in_both_themes() -> None:
    named = {
        path.name: {(path.parent / file).resolve() for file in re.findall(r"[\w./-]+\.webp", path.read_text(encoding="utf-8"))}
        for path in (ROOT / "README.md", ROOT / "docs/dashboard.md")
    }
    there = set(PICTURES.glob("*.webp"))
    assert {path.name for path in there} == {f"{name}-{theme}.webp" for name in SHOWN for theme in THEMES}
    assert set.union(*named.values()) == there
    assert {PICTURES / f"overview-{theme}.webp" for theme in THEMES} <= named["README.md"]
    assert [path.name for path in there if path.stat().st_size > MOST_BYTES] == []
