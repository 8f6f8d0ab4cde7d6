from __future__ import annotations

from typing import Any, get_args

import msgspec
from msgspec import Struct

from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_engine.domain.queues.config import Rate
from ojs_engine.domain.rate_limits.policy import LimitPolicy
from ojs_engine.store.workers.presence import WorkerRecord
from ojs_engine.wire.dialects.readers import Reader
from ojs_engine.wire.members import Extended, bare, encode
from ojs_engine.wire.pages import Page
from ojs_engine.wire.system.extensions import SupportedExtensions
from ojs_features.limits.answers import limit_answer, limit_page
from ojs_features.limits.dialects import SHAPES
from ojs_features.limits.rules import LimitOverride, LimitRecord, PermitHolder
from ojs_gateway.answers.manifest import manifest
from ojs_gateway.dialects.layer import answer_body
from ojs_index.asking.messages import WorkerPage, WorkerRow, WorkerSummary
from ojs_index.lists.fleet import fleet_page, worker_answer, worker_detail, worker_list

NOW = 1_800_000_000_000
AT = "2027-01-15T08:00:00.000Z"
ROW = WorkerRow(record=WorkerRecord(id="w", seen_at=NOW, queues=("a",)))
PAGE = WorkerPage(workers=[ROW], total=1, summary=WorkerSummary(total=1, running=1, quiet=0, terminate=0, stale=0))
RATE = Rate(5, 60_000)
LIMIT = LimitRecord(
    name="key.k",
    policy=LimitPolicy(key="k", concurrency=2),
    holders=(PermitHolder("j", "o", 1, NOW),),
)


def read(answer: Struct | Extended[Any], reader: Reader) -> Any:
    shape = SHAPES.get(type(bare(answer)), {}).get(reader)
    return msgspec.json.decode(answer_body(answer, reader) if shape is None else encode(shape(answer)))


def test_the_command_line_reads_the_last_heartbeat_under_its_own_name() -> None:
    worker = worker_answer(ROW, None)
    for answer in (worker, worker_detail(worker, [])):
        assert read(answer, "cli") == read(answer, "standard") | {"last_heartbeat": AT}
    [listed] = read(fleet_page(PAGE, [None], Page()), "cli")["items"]
    assert listed == read(worker, "cli")


def test_outside_of_the_admin_api_workers_are_called_so_for_everybody() -> None:
    page = fleet_page(PAGE, [None], Page())
    listed = read(worker_list(page), "standard")
    admin = read(page, "standard")
    assert listed.pop("workers") == admin.pop("items")
    assert listed == admin


def test_the_command_line_reads_what_is_free_of_a_limit_beside_its_number() -> None:
    limit = limit_answer("k", LIMIT, 3, NOW)
    assert read(limit, "standard")["concurrency"] == {"limit": 2, "active": 1, "available": 1}
    assert read(limit, "cli") == {
        "key": "k",
        "on_limit": "wait",
        "waiting_count": 3,
        "concurrency": 2,
        "active": 1,
        "available": 1,
    }
    page = read(limit_page([limit], Page(), 1, None), "cli")
    assert page["rate_limits"] == page["items"] == [read(limit, "cli")]
    assert read(limit_answer("k", LimitRecord(name="key.k"), 0, NOW), "cli")["active"] == 0


def test_the_admin_ui_reads_one_number_of_a_limit_that_of_a_rate_before_the_others() -> None:
    limit = limit_answer("k", LIMIT, 3, NOW)
    assert read(limit, "ui") == read(limit, "standard") | {"active": 1, "waiting": 3, "limit": 2}
    assert read(limit_page([limit], Page(), 1, None), "ui")["items"] == [read(limit, "ui")]
    raised = limit_answer("k", msgspec.structs.replace(LIMIT, override=LimitOverride(rate=RATE)), 0, NOW)
    shown = read(raised, "ui")
    assert (shown["limit"], shown["period"], shown["active"]) == (5, "PT1M", 1)
    rate = {"limit": 5, "period": "PT1M"}
    assert shown["override"] == {"rate": rate, **rate}
    assert read(raised, "standard")["override"] == {"rate": rate}
    narrowed = limit_answer("k", msgspec.structs.replace(LIMIT, override=LimitOverride(concurrency=1)), 0, NOW)
    assert read(narrowed, "ui")["override"] == {"concurrency": 1, "limit": 1}


def test_only_sdks_read_the_version_of_the_manifest_under_the_bindings_name() -> None:
    answer = manifest(DEFAULT_LIMITS, 2_000, ("gzip",), SupportedExtensions(()).all, nats=True, keys=False)
    plain = read(answer, "standard")
    for reader in get_args(Reader):
        assert read(answer, reader) == (plain | {"ojs_version": "1.0"} if reader == "sdk" else plain)
