"""Two whole systems that share one account of NATS under different namespaces, both at work."""

from __future__ import annotations

import asyncio
import json
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

import nats
import pytest

from ojs_nats import App, Client, JobContext, Worker
from ojs_nats.errors import UnavailableError
from ojs_nats.jobs import JobRequest
from ojs_nats.worker._lifecycle import Trigger
from support.forked import OJS_NATS, completed
from support.nats import NatsServer
from support.system import System, environment
from support.waiting import eventually

JOBS: Final = 30


class Tenant(NamedTuple):
    """A system and its place in NATS."""

    namespace: str
    system: System
    nats_url: str
    """As clients name it."""


@pytest.fixture(scope="module")
def tenants(shared_nats_server: NatsServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Tenant]]:
    """One with the names that there are without a namespace, and one in `shop`."""
    url, found = shared_nats_server.url, []
    with ExitStack() as stack:
        for namespace, option in (("ojs", ()), ("shop", ("--namespace", "shop"))):
            folder = tmp_path_factory.mktemp(namespace)
            system = stack.enter_context(System.started(folder, "--together", "--nats", url, *option))
            found.append(Tenant(namespace, system, f"{url}?namespace={namespace}"))
        yield found


async def worked(tenant: Tenant) -> list[tuple[str, int]]:
    """Push jobs to one system, run them there, and return the namespace and number of each that ran."""
    app = App(tenant.nats_url)
    ran: list[tuple[str, int]] = []

    @app.job("count.one", queue="counted")
    async def count_one(ctx: JobContext, namespace: str, number: int) -> int:
        await ctx.progress(0.5)
        ran.append((namespace, number))
        return number

    worker = Worker(app, fetch_timeout="200ms")
    running = asyncio.create_task(worker.run())
    async with Client(tenant.nats_url) as client:
        jobs = [JobRequest[int]("count.one", (tenant.namespace, number), {"queue": "counted"}) for number in range(JOBS)]
        handles = await client.push_all(jobs)
        assert [await handle.result("120s") for handle in handles] == list(range(JOBS))
    worker.notify(Trigger.SIGTERM)
    await running
    return sorted(ran)


async def test_workers_of_each_run_the_jobs_of_their_own_alone(tenants: list[Tenant]) -> None:
    ran = await asyncio.gather(*(worked(tenant) for tenant in tenants))
    assert ran == [[(tenant.namespace, number) for number in range(JOBS)] for tenant in tenants]
    for tenant in tenants:
        async with Client(tenant.nats_url) as client:

            async def all_told(asking: Client = client) -> bool:
                return (await asking.system.stats()).jobs.completed == JOBS

            await eventually(all_told)
            config = await client.system.config()
            assert config.backend.namespace == tenant.namespace
            assert config.backend.streams[0] == f"KV_{tenant.namespace}"


def test_a_reset_of_one_leaves_the_other(tenants: list[Tenant]) -> None:
    pushed = [tenant.system.push("t")["id"] for tenant in tenants]
    tenants[1].system.reset()
    found = [
        tenant.system.request("GET", f"/ojs/v1/jobs/{job_id}").status for tenant, job_id in zip(tenants, pushed, strict=True)
    ]
    assert found == [200, 404]


def test_logs_and_metrics_say_which_namespace_they_are_of(tenants: list[Tenant]) -> None:
    for tenant in tenants:
        lines = [json.loads(line) for line in tenant.system.output.splitlines() if line.startswith("{")]
        assert {line.get("namespace") for line in lines} == {tenant.namespace}
        with urllib.request.urlopen(f"{tenant.system.url}/metrics", timeout=20) as answer:
            [build] = [line for line in answer.read().decode().splitlines() if line.startswith("ojs_build_info{")]
        assert f'namespace="{tenant.namespace}"' in build


async def test_each_is_a_micro_service_of_its_own_name(tenants: list[Tenant], shared_nats_server: NatsServer) -> None:
    link = await nats.connect(shared_nats_server.url)
    for tenant in tenants:
        about = json.loads((await link.request(f"$SRV.INFO.{tenant.namespace}", timeout=20)).data)
        assert about["name"] == tenant.namespace
        assert {endpoint["subject"].split(".")[0] for endpoint in about["endpoints"]} == {tenant.namespace}
    await link.close()


async def test_a_client_of_a_namespace_without_a_system_is_told_so(shared_nats_server: NatsServer) -> None:
    async with Client(f"{shared_nats_server.url}?namespace=nobody", retry_for=0.5) as client:
        with pytest.raises(UnavailableError, match="no gateway listens there for the namespace nobody"):
            await client.push(JobRequest("t", (), {}))


def test_contexts_of_the_command_name_a_namespace(tenants: list[Tenant], tmp_path: Path) -> None:
    def ran(*arguments: str) -> subprocess.CompletedProcess[str]:
        return completed([*OJS_NATS, *arguments], environment(XDG_CONFIG_HOME=str(tmp_path)))

    job = tenants[1].system.push("t")["id"]
    for tenant in tenants:
        assert ran("context", "set", tenant.namespace, "--server", tenant.nats_url).returncode == 0
    assert job in ran("--context", "shop", "get", job).stdout
    assert ran("--context", "ojs", "get", job).returncode == 1
    wrong = ran("--server", "nats://127.0.0.1:4222?namespace=Shop", "get", job)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "a namespace has lower-case letters" in wrong.stderr
