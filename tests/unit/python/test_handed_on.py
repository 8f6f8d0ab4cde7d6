"""Results of earlier steps that a fetched job only refers to."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ojs_api.jobs import RESULT
from ojs_nats import OjsError
from ojs_nats._handed_on import with_results
from ojs_nats._operations import Request
from ojs_nats.errors import UnavailableError
from ojs_nats.jobs import Job

FIRST, SECOND = "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e01", "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e02"


class Server:
    def __init__(self, results: dict[str, Any]) -> None:
        self.results = results
        self.asked: list[str] = []

    async def send(self, request: Request) -> bytes:
        assert request.operation is RESULT
        job_id = request.parameters["job_id"]
        self.asked.append(job_id)
        if job_id not in self.results:
            raise UnavailableError("nobody answers")
        return msgspec.json.encode({"job_id": job_id, "state": "completed", "result": self.results[job_id]})


def reference(job_id: str) -> dict[str, str]:
    return {"$ref": f"/ojs/v1/jobs/{job_id}/result"}


def job(*results: Any) -> Job:
    return Job("j", "t", "active", parent_results=list(results))


async def test_references_are_read_once_wherever_they_stand() -> None:
    server = Server({FIRST: {"a": 1}, SECOND: None})
    given = job(reference(FIRST), 5, {"0": reference(SECOND), "1": [reference(FIRST)]})
    by_index = dict(zip("012", given.parent_results, strict=True))
    found = await with_results(msgspec.structs.replace(given, parent_results_by_index=by_index), server.send)
    assert list((found.parent_results_by_index or {}).values()) == found.parent_results
    assert found.parent_results == [{"a": 1}, 5, {"0": None, "1": [{"a": 1}]}]
    assert sorted(server.asked) == [FIRST, SECOND]


@pytest.mark.parametrize(
    "result", [{"$ref": "#/elsewhere"}, {"$ref": f"/ojs/v1/jobs/{FIRST}/result", "b": 1}, {"$ref": 5}, None]
)
async def test_what_is_no_reference_stays(result: Any) -> None:
    server = Server({})
    given = job(result)
    assert await with_results(given, server.send) is given


async def test_one_that_can_t_be_read_is_an_error() -> None:
    with pytest.raises(UnavailableError, match="nobody answers"):
        await with_results(job(reference(FIRST), reference(SECOND)), Server({FIRST: 1}).send)


async def test_more_than_fits_is_an_error() -> None:
    server = Server({FIRST: "a" * 600_000, SECOND: "b" * 600_000})
    with pytest.raises(OjsError, match="the results of earlier steps are more than 1 MiB together"):
        await with_results(job(reference(FIRST), reference(SECOND)), server.send, most_bytes=2**20)
