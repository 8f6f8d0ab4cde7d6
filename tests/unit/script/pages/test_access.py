from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from ojs_engine.access.permissions import Need
from ojs_engine.api.route import Route
from ojs_features.all import FEATURES
from ojs_gateway.routes import parts
from script.pages.access import reference

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "access.md"
OPEN = {"getManifest", "getHealth", "getLiveness", "getOpenApi", "deleteSession"}


def test_the_page_says_what_the_routes_need_now() -> None:
    made = reference()
    assert PAGE.read_text(encoding="utf-8") == made, "run: python -m script.pages.access > docs/reference/access.md"


def test_every_route_names_what_it_needs_and_few_are_open() -> None:
    routes = [route for part in parts(FEATURES) for route in part.routes]
    assert {route.need for route in routes} == {word for kind in get_args(Need) for word in get_args(kind)}
    assert {route.paths[0].split(" ")[2] for route in routes if route.need == "nothing"} == OPEN
    with pytest.raises(TypeError, match="need"):
        Route(lambda _context: None, lambda: None, ("GET /x getX",), summary="x", answers={})  # type: ignore[call-arg,arg-type,return-value]
