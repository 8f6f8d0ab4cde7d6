"""What a gateway refuses that was installed without a feature."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from ojs_engine.base.problems import StartupProblem
from ojs_engine.store.store import Store
from ojs_features.all import FEATURES
from ojs_gateway.server import Gateway
from ojs_runtime.settings import Settings
from support.fake_store import FakeStore


async def test_it_does_not_start_without_the_audit_that_a_setting_asks_for(store: FakeStore) -> None:
    features = tuple(one for one in FEATURES if one.witness is None)
    gateway = Gateway(cast("Store", store), Settings(port=0, nats_api="off", audit_days=30), features)
    with pytest.raises(StartupProblem, match=r"audit_days .* without the audit"):
        await gateway.start()


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"api_key": "k" * 32}, "api_key is set"),
        ({"api_key_file": Path("key")}, "api_key is set"),
        ({"host": "0.0.0.0"}, "others than this machine reach"),
    ],
)
async def test_it_does_not_start_without_keys_where_strangers_would_be_served(
    store: FakeStore, settings: dict[str, Any], why: str
) -> None:
    features = tuple(one for one in FEATURES if one.guard is None)
    gateway = Gateway(cast("Store", store), Settings(port=0, nats_api="off", **settings), features)
    with pytest.raises(StartupProblem, match=f"{why}.*, and this server was installed without keys"):
        await gateway.start()
