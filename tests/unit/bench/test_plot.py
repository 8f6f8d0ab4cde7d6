from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

from msgspec.structs import replace

from bench.plot import draw
from unit.bench.results import enqueue, report, spent


def test_each_scenario_is_drawn_with_its_variants_and_processes(tmp_path: Path) -> None:
    draw([report(enqueue(100, used=spent()), enqueue(50, variant="1 connection", used=spent()))], tmp_path)
    text = "".join(ET.parse(tmp_path / "enqueue.svg").getroot().itertext())
    for part in ("32 connections", "1 connection", "gateway", "CPU µs per job", "jobs a second"):
        assert part in text
    assert "generator" not in text


def test_the_same_reports_make_the_same_bytes(tmp_path: Path) -> None:
    reports = [report(enqueue(100, used=spent(gateway=3.0))), report(enqueue(200, used=spent()))]
    draw(reports, tmp_path / "a")
    draw(reports, tmp_path / "b")
    assert (tmp_path / "a" / "enqueue.svg").read_bytes() == (tmp_path / "b" / "enqueue.svg").read_bytes()
    draw(reports[:1], tmp_path / "b")
    assert (tmp_path / "a" / "enqueue.svg").read_bytes() != (tmp_path / "b" / "enqueue.svg").read_bytes()


def test_latencies_are_drawn_where_there_is_no_rate(tmp_path: Path) -> None:
    draw([report(replace(enqueue(100), rate=None))], tmp_path)
    assert "from p50 to p99" in (tmp_path / "enqueue.svg").read_text()
