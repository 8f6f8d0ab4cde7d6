"""The client's jobs, options and filters have what the server's table of a job's members has."""

from __future__ import annotations

from typing import cast

from ojs_api.jobs import JobDetail
from ojs_engine.domain.members import FOUND_BY, OPTIONS, shown_in
from ojs_nats import App
from ojs_nats.jobs import Job, JobRequest
from ojs_nats.operations.jobs import JobFilter, JobsQuery
from ojs_nats.options import Options
from ojs_nats.testing import fake
from support.plain_members import PLAIN, SENT, plain


def test_a_job_of_the_client_has_no_member_that_the_server_never_shows() -> None:
    assert set(Job.__struct_fields__) <= shown_in("always", "change", "fetch")
    assert set(JobDetail.__struct_fields__) - set(Job.__struct_fields__) <= shown_in("always", "detail")


def test_each_option_of_the_client_is_one_of_the_server() -> None:
    assert set(Options.__annotations__) - {"delay"} <= OPTIONS


def test_what_is_carried_as_it_was_sent_is_an_option_and_a_member_of_the_clients_jobs() -> None:
    assert set(Options.__annotations__) >= set(PLAIN)
    assert set(Job.__struct_fields__) >= set(PLAIN)


def test_the_client_sends_them_as_they_are_and_its_server_in_memory_shows_them() -> None:
    app = App("http://127.0.0.1:1")
    with fake(app) as jobs:
        handle = app.sync.push(JobRequest("mail.send", (), cast("Options", plain(SENT))))
        [job] = jobs.all_enqueued()
    assert job.id == handle.id
    assert {name: getattr(job, name) for name in PLAIN} == plain(SENT)


def test_the_client_finds_jobs_by_all_that_the_server_finds_them_by() -> None:
    named = {by.name for by in FOUND_BY}
    assert set(JobFilter.__struct_fields__) >= named
    assert JobsQuery.__optional_keys__ >= named
