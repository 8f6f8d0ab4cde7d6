"""Whatever the holder of a narrowed key asks: nothing of others' jobs reaches it, and nothing that it does reaches them.

The others' jobs carry a secret in all that a job has, and their ids are chosen before. So the same questions are asked before
they are there and afterwards, and the answers have to be the same, totals and refusals included.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import uuid
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acceptance.test_access_matrix import expected, session_of
from acceptance.test_drawn_requests import LEFT_OUT
from support.drawn import Asker, Drawn, asked, requests, steady
from support.examples import amount
from support.guarded import API, Guarded

pytestmark = pytest.mark.hypothesis  # they draw within the test

NARROWINGS: Final[list[dict[str, list[str]]]] = [
    {"queues": ["shop.*"]},
    {"types": ["order.*"]},
    {"queues": ["shop.*"], "types": ["order.*"]},
]
OWN: Final = "shop.a", "order.paid"
IN_ONE: Final = 20
EXAMPLES: Final = 60 if amount() == "all" else 24
"""Of each narrowing: in CI, those of all three together are as many as of one would be."""
TOLD_OTHERWISE: Final = frozenset(
    {
        "streamEvents",  # it goes on
        "subscribeJobEvents",
        "subscribeQueueEvents",
        "streamJobProgress",
        "websocketConnect",
        *(name for name, one in expected().items() if one.need == "nothing"),  # health and description, told to everybody
    }
)
_NUMBERS: Final = itertools.count(1)


class Others(NamedTuple):
    """What others have, or will have: names that may be asked for, and a secret that nobody asks for."""

    queue: str
    type: str
    worker: str
    ids: list[str]
    secret: str

    @classmethod
    def named(cls) -> Others:
        mark = uuid.uuid4().hex[:10]
        ids = [f"019461a8-1a2b-7c3d-8e4f-{uuid.uuid4().hex[:12]}" for _ in range(4)]
        return cls(f"mail.{mark}", f"mail.t{mark}", f"worker{mark}", ids, f"secret{mark}")

    @property
    def names(self) -> list[str]:
        return [self.queue, self.type, self.worker, *self.ids]


class Ways:
    """Two ways into the same system: by the narrowed key, and by an admin's that isn't narrowed."""

    def __init__(self, runner: asyncio.Runner, guarded: Guarded, narrowing: dict[str, list[str]]) -> None:
        self.runner = runner
        self.guarded = guarded
        self.base = guarded.url + API
        runner.run(self._open(narrowing))
        self.ask = Asker(runner, guarded, self.session)
        self.own = [runner.run(self._own()) for _ in range(2)]

    async def _open(self, narrowing: dict[str, list[str]]) -> None:
        made = await self.guarded.made(f"narrowed{next(_NUMBERS)}", "admin", **narrowing)
        self.session = session_of(made["token"])
        self._admin = session_of(self.guarded.tokens["admin"])

    async def close(self) -> None:
        await self.session.close()
        await self._admin.close()

    async def do(self, method: str, path: str, body: object = None) -> Any:
        async with self._admin.request(method, self.base + path, json=body, headers={"OJS-Version": "1.0"}) as answer:
            assert answer.status < 300, (path, await answer.text())
            return await answer.json(content_type=None)

    async def _own(self) -> str:
        queue, job_type = OWN
        options = {"queue": queue, "delay_until": "2100-01-01T00:00:00Z"}
        return str((await self.do("POST", "/jobs", {"type": job_type, "args": ["own"], "options": options}))["job"]["id"])

    async def plant(self, others: Others) -> None:
        """Give others a job that waits, one that is done, one that is dead, one that is worked on, an entry and a workflow."""
        secret, queue = others.secret, others.queue

        def job(job_id: str | None = None, **options: object) -> dict[str, object]:
            named = {} if job_id is None else {"id": job_id}
            carried = {"args": [secret], "meta": {"note": secret}, "x_own": secret}
            told = {"queue": queue, "tags": [secret], "metadata": {"m": secret}, **options}
            return {**named, "type": others.type, **carried, "options": told}

        later = {"delay_until": "2100-01-01T00:00:00Z"}
        waiting, done, dead, held = others.ids
        await self.do("POST", "/jobs", job(waiting, **later))
        for job_id in (done, dead, held):
            await self.do("POST", "/jobs", job(job_id, retry={"max_attempts": 1, "on_exhaustion": "dead_letter"}))
            fetch = {"queues": [queue], "worker_id": others.worker, "wait_ms": 5_000}
            assert [one["id"] for one in (await self.do("POST", "/workers/fetch", fetch))["jobs"]] == [job_id]
            about = {"job_id": job_id, "worker_id": others.worker, "attempt": 1}
            await self.do("PUT", f"/jobs/{job_id}/progress", {**about, "progress": 0.5, "message": secret})
            if job_id == done:
                await self.do("POST", "/workers/ack", {**about, "result": {"r": secret}})
            elif job_id == dead:
                failure = {"code": "e", "type": secret, "message": secret, "details": {"d": secret}}
                await self.do("POST", "/workers/nack", {**about, "error": failure})
        await self.do("POST", "/workflows", {"type": "group", "name": secret, "jobs": [job(**later), job(**later)]})
        template = {"type": others.type, "args": [secret], "options": {"queue": queue}}
        await self.do("POST", "/cron", {"name": secret, "cron": "0 0 1 1 *", "job_template": template})

    async def states(self, others: Others) -> list[Any]:
        """How the jobs of others are, in all that a job has."""
        return [(await self.do("GET", f"/jobs/{job_id}"))["job"] for job_id in others.ids]


@pytest.fixture(scope="module", params=NARROWINGS, ids=["queues", "types", "both"])
def ways(runner: asyncio.Runner, guarded: Guarded, request: pytest.FixtureRequest) -> Iterator[Ways]:
    opened = Ways(runner, guarded, request.param)
    yield opened
    runner.run(opened.close())


def pools(ways: Ways, others: Others) -> dict[str, list[Any]]:
    """Names of one's own and of others."""
    queues, types = [OWN[0], others.queue, "shop.*", "*"], [OWN[1], others.type, "order.*", "*"]
    ids = [*ways.own, *others.ids]
    return {
        **dict.fromkeys(("queue", "target_queue"), queues),
        **dict.fromkeys(("type", "job_type"), types),
        **dict.fromkeys(("job_id", "id", "workflow_id"), ids),
        "worker": [others.worker, "own"],
        "worker_id": [others.worker, "own"],
        "name": [OWN[0], others.queue],
        "wait_ms": [0],
        "timeout": [0],
        "confirm": [True],
        "url": ["http://127.0.0.1:9/hook"],
    }


def held_back(others: Others, one: Drawn, told: str) -> None:
    """Raise if an answer has anything of others that the question hasn't."""
    assert others.secret not in told, (one, told)
    assert not [name for name in others.names if name in told and name not in one.sent], (one, told)


def test_answers_are_the_same_with_and_without_jobs_of_others(ways: Ways) -> None:
    fixed = Others.named()
    drawn_of = requests(
        ways.guarded.described, pools(ways, fixed), wanted=lambda method, name: method == "GET" and name not in TOLD_OTHERWISE
    )

    @asked(EXAMPLES)
    @given(st.lists(drawn_of, min_size=IN_ONE, max_size=IN_ONE))
    def same(drawn: list[Drawn]) -> None:
        others = Others.named()
        now = [_renamed(one, fixed, others) for one in drawn]
        before = ways.ask(now)
        ways.runner.run(ways.plant(others))
        for one, (was, earlier), (answer, told) in zip(now, before, ways.ask(now), strict=True):
            held_back(others, one, told)
            assert (answer.status, steady(told)) == (was.status, steady(earlier)), one

    same()


def _renamed(one: Drawn, before: Others, after: Others) -> Drawn:
    """The same question about others that aren't there yet."""
    text = json.dumps([one.path, one.body])
    for old, new in zip(before.names, after.names, strict=True):
        text = text.replace(old, new)
    path, body = json.loads(text)
    return one._replace(path=path, body=body)


def test_nothing_that_is_asked_reaches_jobs_of_others(ways: Ways) -> None:
    others = Others.named()
    ways.runner.run(ways.plant(others))
    whole = ways.runner.run(ways.states(others))
    drawn_of = requests(
        ways.guarded.described, pools(ways, others), wanted=lambda method, name: method != "GET" and name not in LEFT_OUT
    )

    @asked(EXAMPLES)
    @given(st.lists(drawn_of, min_size=IN_ONE, max_size=IN_ONE))
    def untouched(drawn: list[Drawn]) -> None:
        for one, (_, told) in zip(drawn, ways.ask(drawn), strict=True):
            held_back(others, one, told)
        assert ways.runner.run(ways.states(others)) == whole, drawn

    untouched()


FILTERS: Final = st.fixed_dictionaries(
    {},
    optional={
        "queue": st.sampled_from(["shop.a", "{queue}", "*"]),
        "queues": st.sampled_from(["shop.a", "{queue}", "shop.a,{queue}", "*"]),
        "types": st.sampled_from(["job.*", "workflow.*,job.completed", "worker.*", "*"]),
        "event_types": st.sampled_from(["job.*", "*"]),
        "job_types": st.sampled_from(["order.*", "{type}", "*"]),
        "channel": st.sampled_from(["all", "queue:shop.a", "queue:{queue}", "job:{job_id}"]),
        "after": st.just("0"),
        "last_event_id": st.just("0"),
    },
)
CHANNELS: Final = st.sampled_from(["all", "events", "queue:shop.a", "queue:{queue}", "job:{job_id}", "type:{type}", "workers"])


def test_no_stream_tells_of_jobs_of_others(ways: Ways) -> None:
    @asked(EXAMPLES // 3)
    @given(st.lists(FILTERS, min_size=3, max_size=3), st.lists(CHANNELS, min_size=3, max_size=3))
    def silent(filters: list[dict[str, str]], channels: list[str]) -> None:
        others = Others.named()
        asked = [{name: _filled(value, others) for name, value in one.items()} for one in filters]
        heard = ways.runner.run(_heard(ways, others, asked, [_filled(channel, others) for channel in channels]))
        for sent, told in heard:
            assert others.secret not in told, (sent, told)
            assert not [name for name in others.names if name in told and name not in sent], (sent, told)

    silent()


def _filled(text: str, others: Others) -> str:
    return text.replace("{queue}", others.queue).replace("{type}", others.type).replace("{job_id}", others.ids[0])


async def _heard(ways: Ways, others: Others, asked: list[dict[str, str]], channels: list[str]) -> list[tuple[str, str]]:
    """What each stream and socket tells until others have done all that they do, and one's own job has come after that."""
    queue, job_type = OWN
    heard: list[tuple[str, str]] = []
    async with (
        ways.session.get(f"{ways.base}/events/stream") as plain,
        ways.session.ws_connect(f"{ways.base}/ws") as socket,
        ways.session.ws_connect(f"{ways.base}/ws") as all_of_it,
    ):
        await all_of_it.send_json({"action": "subscribe", "channel": "all"})
        subscribed = [(await all_of_it.receive()).data]
        for channel in channels:
            await socket.send_json({"action": "subscribe", "channel": channel})
        streams = [await ways.session.get(f"{ways.base}/events/stream", params=one) for one in asked]
        await ways.plant(others)
        body = {"type": job_type, "args": ["own"], "options": {"queue": queue}}
        last = str((await ways.do("POST", "/jobs", body))["job"]["id"])
        async with asyncio.timeout(60):
            told = ""
            while last not in told:
                told += (await plain.content.readany()).decode()
            while last not in subscribed[-1]:
                subscribed.append((await all_of_it.receive()).data)
        heard += [("", told), ("", "".join(subscribed))]
        for one, stream in zip(asked, streams, strict=True):
            heard.append((str(one), stream.content.read_nowait().decode() if stream.status == 200 else await stream.text()))
            stream.close()
        await socket.close()
        heard.append((str(channels), "".join([str(message.data) async for message in socket])))
        await ways.do("DELETE", f"/jobs/{last}")
    return heard
