"""The pages say what is missing. Each of these rows is tried: one that works by now has to leave its page."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import uuid6

from ojs_nats import App, JobContext, Retry
from support.cli import Cli
from support.system import System
from support.tables import each

PAGES: Final = Path(__file__).parents[2] / "docs" / "coming-from"
BULLET: Final = re.compile(r"^- (.+)$", re.MULTILINE)
REFUSED: Final = (TypeError, ValueError)


class Trial:
    """A user who tries to do what a page says is missing."""

    def __init__(self, system: System, folder: Path) -> None:
        self.system = system
        self.cli = Cli(folder, system.url)

    def status(self, method: str, path: str, body: object = None) -> int:
        return self.system.request(method, f"/ojs/v1{path}", body).status

    def push(self, **members: Any) -> int:
        return self.status("POST", "/jobs", {"type": "a.b", "args": []} | members)

    def worker_lacks(self, *options: str) -> bool:
        known = self.cli("worker", "--help").out
        return not any(option in known for option in options)


def context_lacks(*names: str) -> bool:
    return not any(hasattr(JobContext, name) for name in names)


def python_refuses(call: Callable[[], object]) -> bool:
    try:
        call()
    except REFUSED:
        return True
    return False


def job(**options: Any) -> Callable[[], object]:
    def handler() -> None:
        """Do nothing."""

    return lambda: App("http://127.0.0.1:1").job("a.b", **options)(handler)


def no_store_but_nats(trial: Trial) -> bool:
    said = trial.cli("config", "--nats", "postgresql://localhost/jobs")
    return said.code != 0


def own_ids_are_refused(trial: Trial) -> bool:
    return trial.push(id="feed-1") == 400 and trial.push(id=str(uuid6.uuid7())) == 201


MISSING: Final[dict[str, Callable[[Trial], bool]]] = {
    "Tenants as an object": lambda trial: trial.status("GET", "/admin/tenants") == 404,
    "Durable functions": lambda _: context_lacks("step", "run_step", "sleep_until"),
    "Workflows that change": lambda _: context_lacks("replace", "add_to_chord", "add_step"),
    "`worker_max_tasks": lambda trial: trial.worker_lacks("max-tasks", "max-memory", "autoscale"),
    "Topic and broadcast": lambda trial: trial.push(options={"queue": "mail.*"}) == 400,
    "Periodic tasks by the sun": lambda trial: (
        trial.status("POST", "/cron", {"name": "sun", "cron": "@sunset", "type": "a.b", "args": []}) == 400
    ),
    "Brokers to choose": no_store_but_nats,
    "A new process for each job": lambda _: python_refuses(job(runs_in="new_process")),
    "Lists of pauses": lambda _: python_refuses(
        job(retry=Retry(3, initial_interval=[10, 30, 60]))  # type: ignore[arg-type]
    ),
    "`--burst`": lambda trial: trial.worker_lacks("--burst"),
    "Ids of your own, such": own_ids_are_refused,
    "`rq worker -w": lambda trial: trial.worker_lacks("--worker-class"),
    "`retry_for` as a span": lambda _: python_refuses(lambda: Retry(retry_for="1h")),  # type: ignore[call-arg]
    "Children that a running job": lambda _: context_lacks("add_children", "move_to_waiting_children"),
    "`job.updateData()`": lambda _: context_lacks("update_data", "set_args"),
    "LIFO": lambda _: python_refuses(job(lifo=True)),
    "Backoff strategies of your own": lambda _: python_refuses(lambda: Retry(3, backoff=lambda n: n)),  # type: ignore[call-arg]
    "Ids of your own that": own_ids_are_refused,
    "PostgreSQL as a store": no_store_but_nats,
}
OUTSIDE: Final = ("An adapter for Active Job", "A middleware written in Ruby")
"""Rows about programs in another language."""


def rows() -> list[str]:
    found = []
    for page in sorted(PAGES.glob("*.md")):
        sections = re.split(r"^## ", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
        found += [row for section in sections if section.startswith("What is missing") for row in BULLET.findall(section)]
    return found


def test_each_row_has_a_trial() -> None:
    known = (*MISSING, *OUTSIDE)
    assert [row for row in rows() if not row.startswith(known)] == []
    assert [start for start in known if not any(row.startswith(start) for row in rows())] == []


@each("start", MISSING)
def test_what_a_page_calls_missing_is_missing(system: System, tmp_path: Path, start: str) -> None:
    assert MISSING[start](Trial(system, tmp_path))
