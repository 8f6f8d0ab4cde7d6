"""What is compared, and how each is run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple


class Contender(NamedTuple):
    """`needs` is the server that keeps its jobs; `worker` the command, relative to the environment's programs."""

    name: str
    needs: str
    packages: tuple[str, ...]
    worker: Callable[[int], list[str]]
    env: tuple[tuple[str, str], ...] = ()


_TASKIQ: Final = ("taskiq", "taskiq-nats")


_HTTP: Final = ("OJS_URL", "{http}")
_NATS: Final = ("OJS_URL", "{nats}")


def _ours(concurrency: int) -> list[str]:
    return ["ojs-nats", "worker", "contenders.ojs", "--concurrency", str(concurrency), "--log-level", "warning"]


def _ours_ahead(concurrency: int) -> list[str]:
    return [*_ours(concurrency), "--ahead", "100"]


def _taskiq(concurrency: int) -> list[str]:
    limits = ["--max-async-tasks", str(concurrency), "--max-prefetch", str(concurrency)]
    return ["taskiq", "worker", "contenders.taskiq_nats:broker", "--workers", "1", *limits]


CONTENDERS: Final = (
    Contender("ojs", "ojs-nats", (), _ours, (_HTTP,)),
    Contender("ojs over NATS", "ojs-nats", (), _ours, (_NATS,)),
    Contender("ojs, 100 ahead", "ojs-nats", (), _ours_ahead, (_HTTP,)),
    Contender("ojs over NATS, 100 ahead", "ojs-nats", (), _ours_ahead, (_NATS,)),
    Contender("taskiq_nats", "nats", _TASKIQ, _taskiq),
    Contender("taskiq_nats, ten a pull", "nats", _TASKIQ, _taskiq, (("BATCH", "10"),)),
    Contender("arq", "redis", ("arq",), lambda _: ["arq", "contenders.arq.WorkerSettings"]),
    Contender("saq", "redis", ("saq[redis]", "typing-extensions"), lambda _: ["saq", "contenders.saq.settings"]),
    Contender("streaq", "redis", ("streaq",), lambda _: ["streaq", "run", "contenders.streaq:worker"]),
    Contender(
        "celery",
        "redis",
        ("celery[redis]",),
        lambda count: [
            "celery",
            "--app",
            "contenders.celery",
            "worker",
            "--pool",
            "threads",
            "--concurrency",
            str(count),
            "--loglevel",
            "WARNING",
            "--without-gossip",
            "--without-mingle",
        ],
    ),
    Contender(
        "dramatiq",
        "redis",
        ("dramatiq[redis]",),
        lambda count: ["dramatiq", "contenders.dramatiq", "--processes", "1", "--threads", str(count)],
    ),
    Contender(
        "procrastinate",
        "postgres",
        ("procrastinate",),
        lambda count: ["procrastinate", "--app", "contenders.procrastinate.app", "worker", "--concurrency", str(count)],
    ),
    Contender("bullmq", "redis", (), lambda _: ["node", "bullmq.mjs", "work"]),
)
