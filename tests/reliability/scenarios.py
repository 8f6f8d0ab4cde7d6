"""The faults that can be asked for by name."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import Struct

from ojs_engine.base.ids import new_job_id
from ojs_engine.jetstream.api import call
from ojs_engine.jetstream.connection import Failed
from ojs_engine.jetstream.subjects import ANY
from ojs_engine.store.store import Store
from ojs_features.all import STORE_FEATURES
from ojs_index.asking.client import Queries
from reliability.crowd import Crowd
from reliability.ledger import Kind, Verdict
from reliability.site import Dev, Site, small_disk, stepped, upgraded
from support.disks import fill
from support.forked import OJS_NATS
from support.network import BAD
from support.waiting import answered, eventually

_QUIET_S: Final = 4.0
"""Before the first fault and after the last one."""


Disturb = Callable[[Any, float], Coroutine[Any, Any, None]]
"""Does something to a system, which is of the scenario's kind, for some seconds."""


class Scenario(Struct, frozen=True):
    """What is done, and to which system."""

    about: str
    disturb: Disturb
    start: Callable[..., AbstractContextManager[Site | Dev]] = Site.started
    planted: bool = False
    """Promises are broken on purpose, to see that this is found."""
    guests: bool = False
    """Whether it can be run beside others on the nats-servers of the first."""


async def _rounds(site: Site | Dev, seconds: float, rest: tuple[float, float]) -> AsyncIterator[int]:
    """Again and again until the time is over, with rests between that the seed chooses."""
    deadline = time.monotonic() + seconds - _QUIET_S
    await asyncio.sleep(_QUIET_S)
    number = 0
    while number == 0 or time.monotonic() < deadline:
        yield number
        number += 1
        await asyncio.sleep(site.chance.uniform(*rest))
    await asyncio.sleep(_QUIET_S)


async def _nothing(_site: Site | Dev, seconds: float) -> None:
    await asyncio.sleep(seconds)


async def _kill_services(site: Site, seconds: float) -> None:
    async for _ in _rounds(site, seconds, (0.1, 1.0)):
        await site.away([site.chance.choice(site.services)], site.chance.uniform(0, 3))


async def _kill_gateways(site: Site, seconds: float) -> None:
    async for _ in _rounds(site, seconds, (0.5, 3)):
        gateways = site.of("gateway")
        await site.away(site.chance.sample(gateways, site.chance.choice([1, 1, 2])), site.chance.uniform(0, 2))


async def _kill_nats(site: Site, seconds: float) -> None:
    async for _ in _rounds(site, seconds, (2, 6)):
        await site.away(site.servers, site.chance.uniform(0, 3))


async def _kill_mixed(site: Site, seconds: float) -> None:
    async for _ in _rounds(site, seconds, (0.1, 1.5)):
        victims = site.servers if site.chance.random() < 0.25 else []
        await site.away(victims or [site.chance.choice(site.services)], site.chance.uniform(0, 2))


async def _kill_all(site: Site, seconds: float) -> None:
    async for _ in _rounds(site, seconds, (6, 10)):
        await site.away([*site.servers, *site.services], site.chance.uniform(0, 1))


def _pause(kind: str, shortest: float, longest: float) -> Disturb:
    async def disturb(site: Site, seconds: float) -> None:
        async for _ in _rounds(site, seconds, (3, 6)):
            await site.paused([site.chance.choice(site.of(kind))], site.chance.uniform(shortest, longest))

    return disturb


async def _pause_many(site: Site, seconds: float) -> None:
    async for _ in _rounds(site, seconds, (1, 4)):
        count = site.chance.randint(2, 5)
        await site.paused(site.chance.sample(site.services, count), site.chance.uniform(2, 12))


async def _term(site: Site, seconds: float) -> None:
    async for _ in _rounds(site, seconds, (6, 10)):
        await site.away([*site.services, *site.servers], 0.0, signal.SIGTERM)


async def _rolling(site: Site, seconds: float) -> None:
    async for _ in _rounds(site, seconds, (2, 4)):
        for name in site.services:
            await site.away([name], 0.0, signal.SIGTERM)


def _upgrade(*, whole: bool) -> Disturb:
    """Replace each service alone by this version, then by the one before, then by this one again; the seed has the order.

    Unless it is the `whole`, only the first of each kind goes back, and stays there.
    """

    async def disturb(site: Site, seconds: float) -> None:
        await asyncio.sleep(_QUIET_S)
        back = site.services if whole else [name for name in site.services if name.endswith("-1")]
        ways = (
            ("this version", OJS_NATS, site.services),
            ("the version before", site.before, back),
            *([("this version again", OJS_NATS, back)] if whole else []),
        )
        rest = max(seconds - 2 * _QUIET_S, 0.0) / sum(len(names) for *_, names in ways)
        for what, program, names in ways:
            for name in site.chance.sample(names, len(names)):
                await site.replaced(name, what, program)
                await asyncio.sleep(site.chance.uniform(0, 2 * rest))
        await asyncio.sleep(_QUIET_S)

    return disturb


async def _kill_leaders(site: Site, seconds: float) -> None:
    streams = [str(stream["name"]) for stream in site.config.streams()]
    async for number in _rounds(site, seconds, (2, 4)):
        await site.away([await site.leader(streams[number % 3])], 1.0)
        await site.until_whole()


async def _kill_two(site: Site, seconds: float) -> None:
    async for _ in _rounds(site, seconds, (3, 6)):
        await site.away(site.chance.sample(site.servers, 2), site.chance.uniform(1, 6))
        await site.until_whole()


async def _pause_node(site: Site, seconds: float) -> None:
    async for _ in _rounds(site, seconds, (3, 6)):
        leader = await site.leader(site.config.records_stream)
        await site.paused(
            [leader if site.chance.random() < 0.5 else site.chance.choice(site.servers)], site.chance.uniform(5, 15)
        )
        await site.until_whole()


async def _roll_nodes(site: Site, seconds: float) -> None:
    async for number in _rounds(site, seconds, (2, 4)):
        await site.away([site.servers[number % 3]], 0.0, signal.SIGTERM)
        await site.until_whole()


async def _kill_nodes(site: Site, seconds: float) -> None:
    async for _ in _rounds(site, seconds, (6, 10)):
        await site.away(site.servers, site.chance.uniform(0, 2))
        await site.until_whole()


async def _kill_cluster_mixed(site: Site, seconds: float) -> None:
    async for _ in _rounds(site, seconds, (0.5, 2)):
        nodes = site.servers if site.chance.random() < 0.3 else []
        await site.away([site.chance.choice(nodes or site.services)], site.chance.uniform(0, 2))
        if nodes:
            await site.until_whole()


def _bad_network(*kinds: str, longest: float = 8.0) -> Disturb:
    async def disturb(site: Site, seconds: float) -> None:
        async for _ in _rounds(site, seconds, (0.5, 3)):
            await _worsen(site, kinds, longest)

    return disturb


async def _worsen(site: Site, kinds: Sequence[str], longest: float) -> None:
    """Some way of one of the kinds is bad for up to so many seconds."""
    what, links = site.chance.choice(site.ways[site.chance.choice(kinds)])
    await site.bad(what, links, site.chance.choice(BAD), site.chance.uniform(1, longest))
    await site.until_whole()


async def _mixed(site: Site, seconds: float) -> None:
    """Kills of all processes and bad networks of all kinds, in turns."""
    async for number in _rounds(site, seconds, (0.1, 1.0)):
        if number % 2:
            await _worsen(site, list(site.ways), 4.0)
        else:
            victims = site.servers if site.chance.random() < 0.3 else []
            await site.away([site.chance.choice(victims or site.services)], site.chance.uniform(0, 2))
            await site.until_whole()


async def _pull_cable(site: Site, seconds: float) -> None:
    async for _ in _rounds(site, seconds, (1, 4)):
        await site.unplugged(site.chance.uniform(1, 12))


async def _kill_dev(dev: Dev, seconds: float) -> None:
    async for number in _rounds(dev, seconds, (3, 5)):
        match number % 5:
            case 0 | 3 as which:
                child = (
                    "nats-server"
                    if which
                    else dev.chance.choice(["gateway", "scheduler", "reaper", "coordinator", "projector", "webhooks"])
                )
                async with dev.fault(f"SIGKILL {child} of dev"):
                    await dev.end_child(child)
            case which:
                number_, tree = [(signal.SIGKILL, False), (signal.SIGKILL, True), (signal.SIGTERM, False)][which % 3]
                async with dev.fault(f"{number_.name} {'the whole tree of dev' if tree else 'dev'}"):
                    await dev.end(number_, tree=tree)
                    await dev.again()


async def _step_clocks(dev: Dev, seconds: float) -> None:
    children = [name for name in dev.system.children if name != "nats-server"]
    async for _ in _rounds(dev, seconds, (1, 3)):
        child, hours = dev.chance.choice(children), dev.chance.choice([3_600, -3_600, 0])
        async with dev.fault(f"the date of {child} is set {hours} s off"):
            dev.set_date(child, hours)


async def _fill_disk(dev: Dev, seconds: float) -> None:
    filler = dev.data / "filler"
    async for _ in _rounds(dev, seconds, (10, 15)):
        async with dev.fault("the disk is full"):
            await asyncio.to_thread(fill, filler)
            await asyncio.sleep(dev.chance.uniform(5, 10))
            filler.unlink()
            await _until_pushed(dev)


async def _until_pushed(site: Site | Dev) -> None:
    """Wait until a push has been answered as done since, or a minute is over."""
    began = time.time()
    with contextlib.suppress(AssertionError):
        await eventually(lambda: bool(site.ledger.pushed) and site.ledger.pushed[-1] > began, 60.0, every=0.1)


async def _fill_store(site: Site, seconds: float) -> None:
    """The load alone comes to the limit. Jobs are finished all the same, and NATS is given a larger one at the end."""
    await asyncio.sleep(_QUIET_S)
    async with site.fault("JetStream's limit"):
        await asyncio.sleep(max(seconds - 2 * _QUIET_S, 1.0))
        if all(asked.answered for asked in site.ledger.asked.values()):
            site.ledger.failures.append("the limit wasn't reached: it takes more seconds")
        await site.larger("1000000000")
    await asyncio.sleep(_QUIET_S)


async def _connections(site: Site, seconds: float) -> None:
    """Many that wait, many that say nothing, and many that never end what they say."""
    await asyncio.sleep(_QUIET_S)
    async with site.fault("2,000 connections"), Crowd(site.urls) as crowd:
        await crowd.come()
        await asyncio.sleep(max(seconds - 2 * _QUIET_S, 1.0))
    await asyncio.sleep(_QUIET_S)


async def _plant(site: Site, seconds: float) -> None:
    """Take a record away, add one that nobody asked for, and take an event away."""
    await asyncio.sleep(seconds / 2)
    store = await Store.open(site.nats_url, site.config, role="test", features=STORE_FEATURES)
    try:
        done = [hold.job_id for hold in site.ledger.holds if hold.kind is Kind.PLAIN and hold.verdict is Verdict.DONE]
        lost, copied, untold = done[:3]
        found = (await store.records.many([copied]))[copied].job
        assert found is not None
        stranger = msgspec.structs.replace(found, id=new_job_id(int(time.time() * 1000)))
        await _written(store, stranger.id, msgspec.json.encode(stranger))
        await answered(Queries(store).until_relayed, patience_s=120.0)  # what is taken away has been told of
        await _gone(store, store.config.records_stream, store.config.record("job", lost))
        await _gone(store, store.config.events_stream, store.config.event("job.completed", ANY, untold))
    finally:
        await store.close()
    await asyncio.sleep(seconds / 2)


async def _written(store: Store, job_id: str, data: bytes) -> None:
    answer = await store.nats.request(store.config.record("job", job_id), data, "")
    assert not isinstance(answer, Failed), answer


async def _gone(store: Store, stream: str, subject: str) -> None:
    answer = await call(store.nats, f"STREAM.PURGE.{stream}", {"filter": subject})
    assert answer.get("purged"), answer


_one_of_each: Final = partial(Site.started, each=1)
_on_cluster: Final = partial(Site.started, cluster=True)
_by_links: Final = partial(Site.started, links=True)
_cluster_by_links: Final = partial(Site.started, cluster=True, links=True)
_on_small_store: Final = partial(Site.started, storage="6000000")

_EARLIER: Final = {
    "0.2.0": "ad3e059e80c1cc9530790b28c604c6ed89f5a5a2",
    "before-0.3.0": "f194ed1cfd57529ae966bd9929c808e07f378e4e",
}
"""Versions from which an upgrade, and the way back, are tried: names and commits."""
_LAST: Final = "0.2.0"

SCENARIOS: Final[dict[str, Scenario]] = {
    "none": Scenario("no fault: the ledger alone", _nothing, guests=True),
    "kill-services": Scenario("SIGKILL of a service at a time, away for up to 3 s", _kill_services, guests=True),
    "kill-gateways": Scenario("SIGKILL of one gateway or both, away for up to 2 s", _kill_gateways, guests=True),
    "kill-nats": Scenario("SIGKILL of nats-server, away for up to 3 s", _kill_nats),
    "kill-mixed": Scenario("SIGKILL of services and of nats-server, in turns", _kill_mixed, guests=True),
    "kill-all": Scenario("SIGKILL of every process at one moment", _kill_all),
    "pause-gateway": Scenario("SIGSTOP of a gateway for 5 to 20 s", _pause("gateway", 5, 20)),
    "pause-nats": Scenario("SIGSTOP of nats-server for 3 to 15 s", _pause("nats", 3, 15)),
    "pause-scheduler": Scenario("SIGSTOP of a scheduler for 5 to 20 s", _pause("scheduler", 5, 20)),
    "pause-projector": Scenario("SIGSTOP of a projector for 5 to 20 s", _pause("projector", 5, 20)),
    "pause-many": Scenario("SIGSTOP of two to five services for 2 to 12 s", _pause_many),
    "term": Scenario("SIGTERM of every process at one moment", _term),
    "rolling": Scenario("SIGTERM of one service after the other", _rolling),
    **{
        f"upgrade-{version}": Scenario(
            f"each service alone from {version} to this version, back, and again",
            _upgrade(whole=True),
            partial(upgraded, commit=commit),
        )
        for version, commit in _EARLIER.items()
    },
    "upgrade-in-part": Scenario(
        f"each service alone from {_LAST} to this version, and one of each kind back",
        _upgrade(whole=False),
        partial(upgraded, commit=_EARLIER[_LAST]),
    ),
    "kill-leaders": Scenario("cluster: SIGKILL of the leader of a stream, away for 1 s", _kill_leaders, _on_cluster),
    "kill-two": Scenario("cluster: SIGKILL of two servers of three, away for up to 6 s", _kill_two, _on_cluster),
    "pause-node": Scenario(
        "cluster: SIGSTOP of a server, every other time the leader, for 5 to 15 s", _pause_node, _on_cluster
    ),
    "roll-nodes": Scenario("cluster: SIGTERM of one server after the other", _roll_nodes, _on_cluster),
    "kill-nodes": Scenario("cluster: SIGKILL of all servers at one moment", _kill_nodes, _on_cluster),
    "kill-cluster-mixed": Scenario(
        "cluster: SIGKILL of services and of servers, in turns", _kill_cluster_mixed, _on_cluster, guests=True
    ),
    "net-clients": Scenario(
        "a bad network between clients and gateways, one or all", _bad_network("clients", "all clients"), _by_links
    ),
    "net-services": Scenario(
        "a bad network between services and nats-server, one or all",
        _bad_network("services", "all services"),
        _by_links,
    ),
    "net-cluster": Scenario(
        "cluster: a bad network between services and servers, one or all",
        _bad_network("services", "all services"),
        _cluster_by_links,
    ),
    "net-routes": Scenario(
        "cluster: a bad network between a server and another, or both others",
        _bad_network("routes", longest=15.0),
        _cluster_by_links,
    ),
    "net-cable": Scenario(
        "the cable of nats-server's machine is pulled for up to 12 s (takes root, for a network namespace)",
        _pull_cable,
        partial(Site.started, cable=True),
    ),
    "mixed": Scenario("kills and bad networks, in turns", _mixed, _by_links, guests=True),
    "cluster-mixed": Scenario("cluster: kills and bad networks, in turns", _mixed, _cluster_by_links, guests=True),
    "kill-dev": Scenario("script/server: SIGKILL and SIGTERM of dev, its tree, its children", _kill_dev, Dev.started),
    "step-clocks": Scenario(
        "script/server: the date of a service's machine is set by an hour, either way", _step_clocks, stepped
    ),
    "full-disk": Scenario(
        "script/server: a full disk for 5 to 10 s (takes root, to mount a small one)", _fill_disk, small_disk
    ),
    "full-store": Scenario("JetStream's max_file_store is reached, and raised at the end", _fill_store, _on_small_store),
    "connections": Scenario("2,000 idle, waiting and half-sent requests beside the load", _connections),
    "planted": Scenario(
        "a record taken away, one added, an event taken away: must be found",
        _plant,
        partial(Site.started, each=1),
        planted=True,
    ),
}
