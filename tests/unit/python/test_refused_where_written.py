"""Options, arguments and jobs that no push could mean are refused in the line that has them, with a remedy."""

from __future__ import annotations

from typing import Any

import pytest

from ojs_nats import App, Client, RateLimit, Retry, Unique, batch, chain, group
from ojs_nats._requests import template
from ojs_nats.jobs import JobRequest
from ojs_nats.options import Rate
from ojs_nats.sync import SyncClient
from ojs_nats.workflows import Dag
from support.tables import each

app = App("http://127.0.0.1:1")


@app.job("math.add", soft_timeout="5s", runs_in="thread")
def add(first: int, second: int) -> int:
    return first + second


definition: Any = add
a_limit: Any = RateLimit
a_rate: Any = Rate
a_retry: Any = Retry
a_unique: Any = Unique
some_steps: Any = chain
some_jobs: Any = group
"""The same, for what no type checker lets pass."""

_OPTIONS: Any = [
    # words of others
    ({"countdown": 60}, TypeError, 'countdown=60 is no option of a job; write delay="60s"'),
    ({"eta": "soon"}, TypeError, "eta='soon' is no option of a job; write scheduled_at=datetime.now"),
    ({"max_retries": 5}, TypeError, r"max_retries=5 is no option .*Retry\(n\), where n counts the first run"),
    ({"max_attempts": 5}, TypeError, r"write retry=Retry\(5\)"),
    ({"attempts": 5}, TypeError, r"write retry=Retry\(5\)"),
    ({"autoretry_for": (ValueError,)}, TypeError, "every error is tried again: name those that are not"),
    ({"time_limit": 60}, TypeError, 'write timeout="60s"'),
    ({"soft_time_limit": 60}, TypeError, 'write soft_timeout="50s"'),
    ({"ignore_result": True}, TypeError, "a handler that returns nothing stores nothing"),
    ({"bind": True}, TypeError, "hint the first parameter"),
    ({"job_timeout": 60}, TypeError, 'write timeout="60s"'),
    ({"at_front": True}, TypeError, "write priority=10"),
    ({"depends_on": ["a"]}, TypeError, "write a workflow"),
    ({"perform_in": 60}, TypeError, 'write delay="60s"'),
    ({"unique_for": 60}, TypeError, r'write unique=Unique\(period="10m"\)'),
    ({"removeOnComplete": True}, TypeError, "the queue's retention says it"),
    ({"jobId": "1"}, TypeError, "write JobRequest"),
    ({"lifo": True}, TypeError, "write priority=10"),
    # misspelt, and unheard of
    ({"priorty": 9}, TypeError, r"priorty=9 is no option of a job; did you mean priority\?"),
    ({"time_out": 9}, TypeError, r"did you mean timeout\?"),
    ({"max_retires": 9}, TypeError, r"write retry=Retry\(n\)"),
    ({"colour": "red"}, TypeError, "colour='red' is no option of a job; there are delay, "),
    # values of another kind
    ({"priority": "high"}, ValueError, "a priority is a whole number from -100 to 100, not 'high'"),
    ({"priority": None}, ValueError, "a priority is a whole number"),
    ({"meta": "x"}, TypeError, 'meta is a dict, as {"name": "value"}, not \'x\''),
    ({"meta": ["x"]}, TypeError, "meta is a dict"),
    ({"meta": {1: "x"}}, TypeError, "meta has texts as its keys, not 1; write '1'"),
    ({"retry": 5}, TypeError, r"retry is a Retry, not 5; did you mean retry=Retry\(5\), which counts the first"),
    ({"retry": False}, TypeError, r"did you mean retry=Retry\(1\), which runs the job once"),
    ({"retry": {"max_attempts": 5}}, TypeError, r"retry is a Retry, not {'max_attempts': 5}"),
    ({"unique": True}, TypeError, r"unique is a Unique, not True; did you mean unique=Unique\(\)"),
    ({"unique": False}, TypeError, "unique is a Unique, not False; leave it out"),
    ({"rate_limit": "10/s"}, TypeError, r"rate_limit is a RateLimit, not '10/s'; did you mean rate_limit=RateLimit\("),
    ({"rate_limit": Rate(5)}, TypeError, "rate_limit is a RateLimit"),
    ({"rate_limit": a_limit("a", rate=5)}, TypeError, r'rate is a Rate, not 5; did you mean rate=Rate\(5, "1s"\)'),
    ({"rate_limit": a_limit("a", concurrency="5")}, ValueError, "concurrency is a whole number"),
    ({"rate_limit": a_limit("a", on_limit="waits")}, ValueError, r"on_limit is one of .* did you mean 'wait'\?"),
    ({"rate_limit": a_limit("a", rate=a_rate("5"))}, ValueError, "limit is a whole number"),
    ({"retry": a_retry(jitter="no")}, TypeError, "jitter is True or False, not 'no'"),
    ({"retry": a_retry(on_exhaustion="dead-letter")}, ValueError, r"on_exhaustion is one of .* did you mean 'dead_letter'\?"),
    ({"unique": a_unique(on_conflict="rejects")}, ValueError, r"on_conflict is one of .* did you mean 'reject'\?"),
    ({"timeout": None}, ValueError, "timeout: a duration is a text .* not None"),
    ({"timeout": "soon"}, ValueError, "timeout: a duration is written like 30s"),
    ({"delay": [1]}, ValueError, r"delay: a duration is a text .* not \[1\]"),
    ({"delay": True}, ValueError, "delay: a duration is a text"),
    ({"result_ttl": "1 day"}, ValueError, "result_ttl: a duration is written like"),
    ({"scheduled_at": "tomorrow"}, TypeError, "scheduled_at is a datetime with a time zone, .* not 'tomorrow'"),
    ({"expires_at": 5}, TypeError, "expires_at is a datetime with a time zone"),
    ({"pending": "no"}, TypeError, "pending is True or False, not 'no'"),
    ({"version": 1.5}, TypeError, "version is a number or a text"),
    ({"schema": 5}, ValueError, "schema is a text of 1 to 255"),
]


@each(("options", "error", "said"), _OPTIONS)
def test_an_option_that_no_job_has_is_refused_wherever_it_is_written(options: Any, error: Any, said: str) -> None:
    other = App("http://127.0.0.1:1")
    with pytest.raises(error, match=said):
        other.job("a.job", **options)(_nothing)
    assert not other.definitions
    with pytest.raises(error, match=said):
        add.options(**options)
    with pytest.raises(error, match=said):
        JobRequest("a.job", (), options)
    with pytest.raises(error, match=said):
        JobRequest("a.job").with_options(**options)
    with pytest.raises(error, match=said):
        add.job(1, 2).with_options(**options)


@each(
    ("options", "said"),
    [
        ({"runs_in": "processes"}, r"runs_in is one of .* did you mean 'process'\?"),
        ({"soft_timeout": "soon"}, "soft_timeout: a duration is written like"),
    ],
)
def test_an_option_of_a_worker_is_checked_with_the_definition(options: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        App("http://127.0.0.1:1").job("a.job", **options)(_nothing)


@each("options", [{"soft_timeout": "5s"}, {"runs_in": "process"}])
def test_an_option_of_a_worker_is_refused_where_a_job_is_pushed(options: Any) -> None:
    [name] = options
    with pytest.raises(TypeError, match=f"{name} is said where the handler is defined"):
        add.options(**options)
    with pytest.raises(TypeError, match=f"{name} is said where the handler is defined"):
        JobRequest("a.job", (), options)


@each(
    ("args", "said"),
    [
        ("ada", r"args are a tuple or a list of arguments, not 'ada'; write \('ada',\)"),
        ({"to": "ada"}, "not {'to': 'ada'}; a job has no named arguments"),
        (5, r"not 5; write \(5,\)"),
        (None, r"not None; write \(value,\)"),
        ({1, 2}, "not {1, 2}"),
    ],
)
def test_arguments_are_a_list(args: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        JobRequest("email.send", args)
    assert template(JobRequest("email.send", ["ada"]))["args"] == ["ada"]  # type: ignore[arg-type]  # as many write it


_DEFINITION = r"not the definition math.add: write its .job\(…\)"


@each(
    ("made", "said"),
    [
        (lambda: chain(definition, definition), f"a step of a chain is a job.*{_DEFINITION}"),
        (lambda: group(add.job(1, 2), definition), f"a step of a group is a job.*{_DEFINITION}"),
        (lambda: some_steps([add.job(1, 2), add.job(1, 2)]), r"a step of a chain .*not a list: write chain\(\*steps\)"),
        (lambda: some_jobs("math.add"), "a step of a group is a job.* not 'math.add'"),
        (lambda: batch(add.job(1, 2), on_success=definition), f"on_success is a job.*{_DEFINITION}"),
        (lambda: Dag().add(definition), f"a step of a dag is a job.*{_DEFINITION}"),
        (lambda: JobRequest(definition), "a new job begins with the name of its type, not the definition math.add"),
    ],
)
def test_what_is_no_job_is_no_step(made: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        made()


@pytest.mark.parametrize("name", ["Bad T", "", "email..send"])
def test_what_is_no_type_is_no_job(name: str) -> None:
    with pytest.raises(ValueError, match=r"a job type is one or more words with dots between them, such as email\.send"):
        JobRequest(name)


async def test_a_client_takes_jobs_and_workflows_alone() -> None:
    async with Client("http://127.0.0.1:1") as client:
        given: Any = definition
        with pytest.raises(TypeError, match=f"what is pushed is a job.*{_DEFINITION}"):
            await client.push(given)
        with pytest.raises(TypeError, match=f"what is pushed is a job.*{_DEFINITION}"):
            await client.push_all([given])
        with pytest.raises(TypeError, match=f"what is pushed is a job.*{_DEFINITION}"):
            await client.push_each([given])
        with pytest.raises(TypeError, match=f"what a cron entry runs is a job.*{_DEFINITION}"):
            await client.crons.register("q", "* * * * *", given)
        with pytest.raises(TypeError, match=f"what a cron entry runs is a job.*{_DEFINITION}"):
            await client.crons.update("q", job=given)
        flow: Any = [add.job(1, 2)]
        with pytest.raises(TypeError, match=r"what is started is a workflow.* not a list: write chain\(\*steps\)"):
            await client.workflows.start(flow)
        with pytest.raises(TypeError, match="what is started is a workflow"):
            await client.workflows.start(given)
        defaults: Any = {"countdown": 60}
        with pytest.raises(TypeError, match=r"defaults: countdown=60 is no option of a job"):
            await client.workflows.start(chain(add.job(1, 2)), defaults=defaults)


def test_code_without_a_loop_gets_the_same_refusal() -> None:
    given: Any = definition
    with SyncClient("http://127.0.0.1:1") as client, pytest.raises(TypeError, match=_DEFINITION):
        client.push(given)


def test_options_that_are_good_are_checked_once_for_all_pushes_of_a_definition() -> None:
    known = app.job("math.known", queue="math", retry=Retry(5), soft_timeout="5s")(_nothing)
    first, second = known.job(), known.job()
    assert first.options is second.options
    assert first.options == {"queue": "math", "retry": Retry(5)}
    assert first.with_options(priority=5).options == {"queue": "math", "retry": Retry(5), "priority": 5}


def _nothing() -> None: ...


@each(
    "name, instead",
    [
        ("delay", "write await job.push(…), or job.push_sync(…) where no event loop runs"),
        ("apply_async", "write job.options(priority=5).push(…)"),
        ("perform_in", 'write await job.later("1m").push(…)'),
        ("si", "write job.job(…), which workflows and push_all take"),
    ],
)
def test_what_others_call_the_methods_of_a_definition_is_answered_with_what_to_write(name: str, instead: str) -> None:
    with pytest.raises(AttributeError) as raised:
        getattr(add, name)
    assert instead in str(raised.value)
    assert not hasattr(add.options(priority=5), name)


def test_a_name_that_nobody_has_for_a_method_is_an_attribute_error_as_any() -> None:
    with pytest.raises(AttributeError, match=r"'PlainDefinition' object has no attribute 'pusch'$"):
        assert definition.pusch


@each("args, said", [((1,), "missing a required argument"), ((1, 2, 3), "too many positional arguments")])
def test_a_call_with_too_few_or_too_many_arguments_names_the_function(args: tuple[int, ...], said: str) -> None:
    with pytest.raises(TypeError, match=f"^add: {said}"):
        definition.job(*args)
