from __future__ import annotations

from typing import get_type_hints

from ojs_engine.api.streams import Conversation, EventStream
from ojs_features.all import FEATURES
from ojs_gateway.openapi.document import parameters_of, places
from ojs_gateway.routes import parts

ROUTES = [route for part in parts(FEATURES) for route in part.routes]


def test_a_route_is_narrowed_by_the_queue_of_its_path_if_it_has_one() -> None:
    for route in ROUTES:
        in_path = "queue" in parameters_of(next(places(route)).path)
        assert (route.narrowing == "queue") is in_path, route.paths


def test_what_is_granted_by_queue_is_narrowed_as_well() -> None:
    assert not [route.paths for route in ROUTES if route.by_queue and route.narrowing == "refused"]


def test_routes_that_stream_say_so_and_no_others_do() -> None:
    for route in ROUTES:
        answers = get_type_hints(route.handler)["return"]
        assert route.streams is (answers in {EventStream, Conversation}), route.paths
