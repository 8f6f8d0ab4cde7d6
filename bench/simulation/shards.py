"""What each of N streams has to carry when records and tokens are spread by a hash. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final, Literal, NamedTuple, get_args

Layout = Literal["queue", "id", "split"]
"""By what a stream is chosen: records and tokens by their queue, both by the job's id, or records by id and tokens by queue."""
LAYOUTS: Final[tuple[Layout, ...]] = get_args(Layout)


class Shares(NamedTuple):
    """The part of all jobs that each shard has, in records and in tokens; each adds up to 1."""

    records: tuple[float, ...]
    tokens: tuple[float, ...]


def zipf(queues: int, exponent: float) -> list[float]:
    """Return the part of all jobs that each queue has, the largest first; with an exponent of 0 all are alike."""
    weights = [rank**-exponent for rank in range(1, queues + 1)]
    total = sum(weights)
    return [weight / total for weight in weights]


def shard_of(name: str, shards: int) -> int:
    """Return the shard of a name, the same in each process and version."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest()) % shards


def shares(layout: Layout, queues: Sequence[float], shards: int, seed: int) -> Shares:
    """Return what each shard has of jobs in queues of these sizes; `seed` makes the queues' names.

    Ids are many, so a hash of them spreads jobs evenly: each shard has as much.
    """
    even = (1 / shards,) * shards
    by_queue = [0.0] * shards
    for number, share in enumerate(queues):
        by_queue[shard_of(f"{seed}.queue-{number}", shards)] += share
    return Shares(
        even if layout != "queue" else tuple(by_queue),
        even if layout == "id" else tuple(by_queue),
    )
