"""Test a site with TestClient, which has a loop of its own: one for each `with`, else one for each request."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient
from fastapi_site import site
from jobs import send_welcome

from ojs_nats.testing import Fake

JOB = {"type": "welcome.send", "state": "available"}


@pytest.mark.parametrize("path", ["/members", "/plain/members"])
def test_what_is_pushed_without_a_server(ojs_fake: Fake, path: str) -> None:
    TestClient(site).post(path, params={"email": "ada@example.org"})
    ojs_fake.assert_enqueued(send_welcome, "ada@example.org", queue="mail")


@pytest.mark.usefixtures("ojs_server")
def test_requests_of_one_lifespan() -> None:
    with TestClient(site) as client:
        for email in ("ada@example.org", "bob@example.org"):
            job = client.post("/members", params={"email": email}).json()["job"]
            assert client.get(f"/jobs/{job}").json() == JOB


@pytest.mark.usefixtures("ojs_server")
def test_requests_without_a_lifespan() -> None:
    client = TestClient(site)
    for path in ("/members", "/plain/members"):
        job = client.post(path, params={"email": "ada@example.org"}).json()["job"]
        assert client.get(f"/jobs/{job}").json() == JOB
