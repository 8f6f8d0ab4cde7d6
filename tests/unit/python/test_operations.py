"""What the client asks for is what the server offers."""

from __future__ import annotations

import pytest

from ojs_gateway.openapi.document import places
from ojs_gateway.routes import PARTS
from ojs_nats import _operations
from ojs_nats._operations import Operation

OFFERED = {place.operation_id: (place.method, place.path) for part in PARTS for route in part.routes for place in places(route)}
ASKED = [value for value in vars(_operations).values() if isinstance(value, Operation)]


@pytest.mark.parametrize("operation", ASKED, ids=lambda operation: operation.name)
def test_the_server_has_the_operation_by_this_name_at_this_place(operation: Operation) -> None:
    method, path = OFFERED[operation.name]
    assert (operation.method, f"/ojs/v1{operation.path}") == (method, path)
