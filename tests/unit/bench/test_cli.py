from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bench.cli import main
from bench.result import Report
from unit.bench.results import enqueue, report, spent

pytestmark = pytest.mark.usefixtures("signals_kept")  # uvloop leaves its handlers


def test_stored_reports_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spending = {"a": 2.0, "b": 1.0}
    paths = [_stored(tmp_path / name, report(enqueue(1_000, used=spent(gateway=cpu_s)))) for name, cpu_s in spending.items()]
    assert main(["--compare", *paths]) == 0
    printed = capsys.readouterr().out
    assert "all CPU µs/job" in printed
    assert "0.50" in printed


def _stored(path: Path, one: Report) -> str:
    path.write_bytes(msgspec.json.encode(one))
    return str(path)


@pytest.mark.parametrize(("cpu_s", "code"), [((1.0, 1.0), 0), ((1.0, 1.5), 0), ((1.2, 1.5), 1)])
def test_what_costs_too_much_in_each_round_is_missed(
    capsys: pytest.CaptureFixture[str], cpu_s: tuple[float, ...], code: int
) -> None:
    before = report(*(enqueue(1_000, used=spent(gateway=1.0)) for _ in cpu_s))
    after = report(*(enqueue(1_000, used=spent(gateway=one)) for one in cpu_s))

    async def measured(*given: object) -> tuple[Report, Report]:
        enough = given[-1]
        assert callable(enough)
        assert enough(before, after) is (code == 0)
        return before, after

    assert main(["--against", ".", "--at-most", "1.1", "enqueue"], in_turn=measured) == code
    assert ("**missed**: enqueue (32 connections) costs 1.20 to 1.50" in capsys.readouterr().out) is bool(code)
