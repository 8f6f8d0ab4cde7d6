from __future__ import annotations

from bench.processes import Spent
from bench.trust import doubts
from support.tables import each
from unit.bench.results import spent


def found(
    *,
    used: Spent | None = None,
    seconds: float = 5.0,
    jobs: int = 10_000,
    samples: int = 10_000,
    errors: int = 0,
    lag: float | None = None,
) -> list[str]:
    return doubts(spent=used, cores=2, seconds=seconds, jobs=jobs, samples=samples, errors={"500": errors}, send_lag_ms=lag)


def test_a_clean_measurement_is_trusted() -> None:
    assert found(used=spent(), errors=100, lag=0.9) == []


@each(
    ("reasons", "expected"),
    [
        (found(used=spent(generator=4.5)), "generator saturated (90% of a core)"),
        (found(used=spent(other=2.0)), "machine busy with other work (20% of all cores)"),
        (found(used=spent(gone=("scheduler",))), "process scheduler ended or couldn't be read"),
        (found(errors=101), "101 errors for 10,000 jobs"),
        (found(jobs=0, errors=1), "1 errors for 0 jobs"),
        (found(lag=1.5), "send lag p99 1.5 ms"),
        (found(samples=199), "only 199 samples"),
        (found(seconds=0.1), "only 0.10 s long"),
    ],
)
def test_each_reason_is_named(reasons: list[str], expected: str) -> None:
    assert reasons == [expected]
