"""Every member of every request of the contract, wrong in every way, over HTTP."""

from __future__ import annotations

import pytest

from ojs_api.operations import Operation
from support.contract import refusing, wrong_requests
from support.system import System


@pytest.mark.parametrize("operation", list(refusing()), ids=lambda operation: operation.name)
def test_a_wrong_member_is_refused_by_its_name(system: System, operation: Operation) -> None:
    for wrong in wrong_requests(operation):
        answer = system.request(operation.method, wrong.path, wrong.body)
        assert 400 <= answer.status < 500, wrong.body
        assert answer.body["error"]["details"]["field"], wrong.body
