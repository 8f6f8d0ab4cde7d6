"""The model behind docs/sizing.md and docs/adr/091: where a mistake in it would be believed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.cli import main
from bench.simulation.costs import COSTS, Work, costs_table, work
from bench.simulation.day import curve, follow
from bench.simulation.fleet import Fleet, around, search
from bench.simulation.outcome import Scenario, outcome, smallest
from bench.simulation.shards import LAYOUTS, Layout, lanes, shard_of, shares, zipf
from bench.simulation.sizing import EXAMPLES, Load, fitting_size, need, sizing_table

PAGE = Path(__file__).parents[3] / "docs/sizing.md"
SMALL = Scenario(per_day=1e7, queues=20, peak=2, replicas=3, seeds=2)


@pytest.mark.parametrize("table", [costs_table(), sizing_table(EXAMPLES)])
def test_the_page_has_the_tables_of_the_code(table: str) -> None:
    assert table in PAGE.read_text()


def test_what_a_thousand_jobs_a_second_take() -> None:
    found = need(Load(per_second=1_000, kept_h=1, body_kb=0.6))
    assert (found.gateway_cores, found.nats_cores, found.projector_cores) == pytest.approx((1.347, 0.572, 0.290))
    assert found.gateways == 3
    assert found.stored == 3_600_000
    assert found.nats_disk_gb == pytest.approx(3.6 * (3.4 + 0.6))
    assert found.index_gb == pytest.approx(3.6 * (2.5 + 0.6))
    assert found.rebuilt_min == pytest.approx(3_600_000 / 22_700 / 60)
    assert found.connections == (3 + 4) * 2


def test_batches_spare_the_gateway_and_not_the_projector() -> None:
    single, batched = work(COSTS, batched=False), work(COSTS, batched=True)
    assert batched == Work(154 + 189 + 146, 100 + 224 + 360, 119 + 136 + 153)
    assert batched.gateway < single.gateway
    assert batched.projector > single.projector


def test_faster_cores_do_more() -> None:
    slow, fast = (need(Load(per_second=5_000, speed=speed)) for speed in (1, 2))
    assert fast.gateway_cores == slow.gateway_cores / 2
    assert (slow.one_projector_keeps_up, fast.one_projector_keeps_up) == (False, True)


@pytest.mark.parametrize(
    ("gigabytes", "size"),
    [(0, "small"), (10, "small"), (10.1, "medium"), (50, "medium"), (250, "large"), (251, "none: --jobs")],
)
def test_a_size_has_room_for_twice_what_is_stored(gigabytes: float, size: str) -> None:
    assert fitting_size(gigabytes).startswith(size)


def test_the_shares_of_zipf() -> None:
    assert zipf(4, 0) == [0.25] * 4
    assert zipf(3, 1) == pytest.approx([6 / 11, 3 / 11, 2 / 11])


def test_a_name_keeps_its_shard() -> None:
    assert [shard_of(name, 16) for name in ("email", "invoices", "thumbnails")] == [13, 5, 11]


@given(st.sampled_from(LAYOUTS), st.integers(1, 50), st.floats(0, 3), st.integers(1, 40), st.floats(0.01, 1))
def test_no_job_is_lost_or_counted_twice(layout: Layout, queues: int, skew: float, shards: int, lane: float) -> None:
    found = shares(layout, zipf(queues, skew), shards, 0, lane)
    assert (sum(found.records), sum(found.tokens)) == pytest.approx((1, 1))
    assert (len(found.records), len(found.tokens)) == (shards, shards)
    if layout != "queue":
        assert max(found.records) == min(found.records)


def test_one_queue_fills_one_stream_unless_it_has_lanes() -> None:
    tokens = {layout: max(shares(layout, [1.0], 8, 0, 0.25).tokens) for layout in LAYOUTS}
    assert tokens == {"queue": 1, "id": 1 / 8, "split": 1, "lanes": 1 / 4}
    assert [lanes("lanes", share, 8, 0.25) for share in (0.01, 0.25, 0.26, 1)] == [1, 1, 2, 4]
    assert lanes("lanes", 1, 2, 0.25) == 2


@pytest.mark.parametrize("peak", [1, 1.5, 2, 5, 20])
def test_a_day_has_its_mean_and_its_peak(peak: float) -> None:
    rates = curve(peak)
    assert sum(rates) / len(rates) == pytest.approx(1)
    assert max(rates) == pytest.approx(peak, rel=1e-3)


@pytest.mark.parametrize("peak", [0.9, 21])
def test_a_peak_that_no_day_has_is_refused(peak: float) -> None:
    with pytest.raises(ValueError, match="1 to 20 times"):
        curve(peak)


def test_what_comes_too_fast_waits_and_is_caught_up() -> None:
    hour, rest = [20.0] * 60, [0.0] * (23 * 60)
    found, through = follow([*hour, *rest], 10)
    assert (found.used, found.lag_s) == (2, 3_600)
    assert found.behind_h == pytest.approx(2, abs=1 / 60)
    assert found.keeps_up
    assert sum(through) == pytest.approx(sum(hour))
    assert max(through) == 10


def test_what_comes_too_fast_all_day_is_never_caught_up() -> None:
    found, _ = follow([11.0] * 1_440, 10)
    assert not found.keeps_up
    assert found.left == pytest.approx((86_400, 2 * 86_400))


def test_what_is_too_much_is_named() -> None:
    writes = SMALL.stream_writes / COSTS.record_writes.value
    busy = Scenario(per_day=writes * 86_400 * 0.61, peak=1, speed=100, seeds=1)
    assert outcome(busy, "split", 1).too_much == ("writes of records",)
    assert outcome(busy, "split", 2).too_much == ()
    slow = Scenario(per_day=4_000 * 86_400, peak=1, replicas=1, seeds=1)
    assert outcome(slow, "split", 1).too_much == ("projector",)
    assert outcome(slow, "split", 2).too_much == ()


def test_the_worst_placement_counts() -> None:
    many = Scenario(seeds=5)
    tokens = [max(shares("split", zipf(1_000, 1), 8, seed, many.lane).tokens) for seed in range(5)]
    assert len(set(tokens)) > 1
    peak = many.per_second * many.peak * COSTS.ready_writes.value / many.stream_writes
    assert outcome(many, "split", 8).tokens_used == pytest.approx(max(tokens) * peak)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_small_load_needs_one_stream(layout: Layout) -> None:
    assert smallest(SMALL, layout).shards == 1


def test_half_of_the_smallest_number_is_not_enough() -> None:
    large = Scenario(skew=1, seeds=3)
    found = smallest(large, "lanes")
    assert found.enough
    assert not outcome(large, "lanes", found.shards // 2).enough


def test_a_queue_that_is_too_busy_for_a_stream_is_never_enough_without_lanes() -> None:
    large = Scenario(queues=1, seeds=1)
    assert not smallest(large, "split").enough
    assert smallest(large, "lanes").enough


def test_what_a_fleet_costs() -> None:
    fleet = Fleet(gateways=1_000, servers=10, shards=16, listeners=1_000, per_second=10_000)
    found = around(fleet)
    assert found.connections_a_server == 204
    assert found.watch_consumers == 5_020
    assert found.too_many_watches
    assert found.wakes == 10_000_000
    assert found.wake_cores == pytest.approx(24)
    assert found.gateway_hearing == pytest.approx(0.85)


@pytest.mark.parametrize(("backlog", "streams", "rounds"), [(0, 1, 1), (20_000, 1, 1), (20_001, 1, 2), (320_000, 16, 1)])
def test_how_long_the_safety_net_searches(backlog: int, streams: int, rounds: int) -> None:
    found = search(backlog, streams)
    assert (found.rounds, found.seconds) == (rounds, rounds * 10)


def test_streams_are_searched_at_the_same_time() -> None:
    one, many = (search(10**7, streams) for streams in (1, 16))
    assert many.nats_cores == pytest.approx(16 * one.nats_cores)
    assert many.projector_cores == one.projector_cores


def test_the_command_prints_every_layout(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--per-day", "1e7", "--skew", "1", "--gateways", "10", "--queues", "20", "--shards", "1"]) == 0
    printed = capsys.readouterr().out
    assert all(f"| {layout} " in printed for layout in LAYOUTS)
    assert main(["simulate", "--size", "10"]) == 0
    assert sizing_table([Load(per_second=10)]) in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--peak", "0.5"], "0.5 is not from 1 to 20"),
        (["--shards", "8,0"], "0 is not from 1 to 1024"),
        (["--costs", "--sizing"], "not allowed with"),
        (["--gateways", "many"], "--gateways"),
    ],
)
def test_wrong_use_of_the_simulation_is_told(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["simulate", *arguments])
    assert ended.value.code == 2
    assert told in capsys.readouterr().err
