from __future__ import annotations

import msgspec
import pytest

from bench.compare import compare, costs, ratios
from bench.report import render, summarise, table
from bench.result import Report, Result
from unit.bench.results import enqueue, report, spent


def test_repetitions_are_summed_up_by_median_and_range() -> None:
    first, other = summarise([enqueue(100), enqueue(50, variant="1 connection"), enqueue(300), enqueue(200)])
    assert (first.variant, first.times) == ("32 connections", 3)
    assert (first.lowest["jobs/s"], first.figures["jobs/s"], first.highest["jobs/s"]) == (100, 200, 300)
    assert (other.variant, other.times, other.figures["jobs/s"]) == ("1 connection", 1, 50)


def test_errors_are_added_up_over_repetitions() -> None:
    (summary,) = summarise([enqueue(1, errors={"503": 2}), enqueue(1, errors={"503": 1, "409": 1})])
    assert summary.errors == {"503": 3, "409": 1}


def test_cpu_is_given_per_job_and_per_second() -> None:
    (summary,) = summarise([enqueue(1000, used=spent(gateway=2.0))])
    assert summary.cpu_us["gateway"] == pytest.approx(400)
    assert summary.cores["gateway"] == pytest.approx(0.4)
    assert summary.memory["generator"] == (30.0, None)


def test_tables_are_aligned() -> None:
    assert table(["a", "n"], [["x", "10,000"], ["long", "1"]]) == (
        "| a    |      n |\n| ---- | -----: |\n| x    | 10,000 |\n| long |      1 |"
    )
    narrow = table(["name", "!"], [["x", ""]]).splitlines()[1]
    assert narrow == "| ---- | -: |"


def test_the_report_says_where_and_what_went_wrong() -> None:
    text = render(report(enqueue(7000, errors={"503 backend_unavailable": 12}, used=spent())))
    for part in (
        "ojs-nats 1",
        "2026-01-01",
        "2 cores (a CPU)",
        "CPython 3",
        "7,000",
        "12 of '503 backend_unavailable'",
        "gateway",
    ):
        assert part in text


def test_a_scenarios_own_figures_are_noted() -> None:
    with_more = msgspec.structs.replace(enqueue(1), more={"empty answers": 31, "send lag p99 ms": 0.256, "none": 0})
    assert "- enqueue (32 connections): empty answers 31, send lag p99 ms 0.26" in render(report(with_more)).splitlines()


def test_a_report_survives_its_file() -> None:
    whole = report(enqueue(7000, used=spent()))
    assert msgspec.json.decode(msgspec.json.encode(whole), type=Report) == whole


def test_comparison_gives_ratios_with_their_direction() -> None:
    text = compare(report(enqueue(1000, p50=2.0)), report(enqueue(1500, p50=4.0), enqueue(1, variant="1 connection")))
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| enqueue")]
    assert rows == [
        ["enqueue", "32 connections", "jobs/s", "1,000", "1,500", "1.50", "", "better", ""],
        ["enqueue", "32 connections", "p50 ms", "2", "4", "2.00", "", "worse", ""],
        ["enqueue", "32 connections", "p99 ms", "8", "16", "2.00", "", "worse", ""],
    ]


def test_what_takes_cores_without_jobs_is_compared() -> None:
    idle = [Result(scenario="idle", variant="polls", jobs=0, seconds=5.0, more={"cores": cores}) for cores in (1.6, 0.08)]
    [cores] = ratios(report(idle[0]), report(idle[1]))
    assert (cores.figure, cores.word) == ("cores", "better")
    assert cores.ratio == pytest.approx(0.05)


def test_repetitions_are_compared_in_pairs() -> None:
    slower_and_slower = (1.0, 2.0, 4.0)
    before = report(*(enqueue(1_000, used=spent(gateway=2.0 * slow)) for slow in slower_and_slower))
    after = report(*(enqueue(1_000, used=spent(gateway=1.0 * slow, generator=9)) for slow in slower_and_slower))
    [cost] = costs(ratios(before, after))
    assert (cost.ratio, cost.lowest, cost.highest, cost.word) == (0.5, 0.5, 0.5, "better")
    assert [cost.a, cost.b] == pytest.approx([800, 400])


def test_repetitions_that_have_no_partner_are_compared_by_their_medians() -> None:
    found = ratios(report(enqueue(1_000)), report(enqueue(500), enqueue(2_000), enqueue(4_000)))
    assert [(ratio.ratio, ratio.lowest) for ratio in found if ratio.figure == "jobs/s"] == [(2, 2)]


def test_comparison_calls_noise_the_same_and_marks_what_had_errors() -> None:
    text = compare(report(enqueue(1000)), report(enqueue(1049, errors={"500": 1})))
    assert "| 1.05 |" in text
    assert "| same |  ! |" in text


def test_reports_without_anything_in_common_are_refused() -> None:
    with pytest.raises(ValueError, match="in common"):
        compare(report(enqueue(1)), report(enqueue(1, variant="1 connection")))
