from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import cast

from structlog.testing import capture_logs

from ojs_command.services import SERVICES
from ojs_engine.store.store import Store
from ojs_engine.store.workers.presence import ROLES
from ojs_engine.telemetry import metrics
from ojs_features.all import FEATURES
from ojs_features.plug import Process
from ojs_gateway.roles import PATIENCE, Roles
from support.fake_store import FakeStore
from support.fake_store import Presence as Fake


async def _wanted(_store: Store) -> bool:
    return True


async def _not_wanted(_store: Store) -> bool:
    return False


def roles_of(presence: Fake, wanted: Callable[[Store], Awaitable[bool]] = _wanted) -> Roles:
    """Roles of a system with a feature that has a process."""
    store = FakeStore()
    store.presence = presence
    return Roles(cast("Store", store), [Process(role="webhooks", without="nobody is called", wanted=wanted)])


def test_every_service_is_a_role() -> None:
    assert tuple(entry.name for entry in SERVICES) == (
        *ROLES,
        *(process.role for feature in FEATURES for process in feature.processes),
    )


async def test_a_role_without_a_process_is_told_once_and_again_when_it_is_there() -> None:
    presence = Fake()
    roles = roles_of(presence)
    del presence.roles["reaper"]
    with capture_logs() as logs:
        for look in range(1, PATIENCE + 3):
            await roles.look()
            assert roles.missing == (["reaper"] if look >= PATIENCE else [])
        presence.roles = Fake().roles
        await roles.look()
        await roles.look()
    assert [(line["event"], line["role"]) for line in logs] == [
        ("no process of a role is running", "reaper"),
        ("a role is there again", "reaper"),
    ]
    assert roles.missing == []


async def test_the_processes_of_each_role_are_a_metric() -> None:
    presence = Fake()
    presence.roles = Counter({"gateway": 2, "reaper": 1})
    await roles_of(presence).look()
    series = {sample.labels["role"]: sample.value for sample in next(iter(metrics.SERVICES_UP.collect())).samples}
    expected = {"gateway": 2, "scheduler": 0, "reaper": 1, "projector": 0, "webhooks": 0}
    assert series | expected == series  # roles that others have looked at in this process stay in the metric


async def test_nobody_misses_the_webhooks_role_without_a_subscription() -> None:
    presence = Fake()
    del presence.roles["webhooks"]
    without, with_one = roles_of(presence, _not_wanted), roles_of(presence)
    for _ in range(PATIENCE):
        await without.look()
        await with_one.look()
    assert (without.missing, with_one.missing) == ([], ["webhooks"])
