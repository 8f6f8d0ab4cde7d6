"""Pools as official clients read them."""

from __future__ import annotations

import msgspec

from ojs_api.pools import PoolList
from ojs_engine.store.workers.presence import WorkerRecord
from ojs_engine.wire.members import encode
from ojs_features.pools.bodies import listed_pool
from ojs_features.pools.dialects import SHAPES
from ojs_features.pools.rules import Pool
from ojs_index.asking.messages import WorkerRow

ROW = WorkerRow(record=WorkerRecord(id="w", seen_at=1_800_000_000_000, queues=("a",)))


def test_the_admin_ui_reads_pools_with_their_workers() -> None:
    answer = PoolList([listed_pool(Pool(name="p", weights={"a": 2}), [ROW], 4)])
    [plain] = msgspec.json.decode(encode(answer))["items"]
    assert (plain["queues"], plain["weights"]) == (["a"], {"a": 2})
    assert (plain["active_workers"], plain["active_jobs"], plain["concurrency"]) == (1, 4, 1)
    shown = msgspec.json.decode(encode(SHAPES[PoolList]["ui"](answer)))
    assert shown == {"items": [plain], "pools": [plain | {"id": "p", "workers": 1}]}
