"""What each of N streams has to carry when records and tokens are spread by a hash. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from hashlib import blake2b
from typing import Final, Literal, NamedTuple, get_args

Layout = Literal["queue", "id", "split", "lanes"]
"""By what a stream is chosen.

`queue`: records and tokens by their queue. `id`: both by the job's id. `split`: records by id, tokens by queue. `lanes`: the
same, but a busy queue's tokens are dealt out by id to as many streams as it takes.
"""
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


def lanes(layout: Layout, share: float, shards: int, lane: float) -> int:
    """Return over how many streams the tokens of a queue with that share are spread; a lane takes the share `lane` at most."""
    if layout == "id":
        return shards
    return min(shards, max(1, math.ceil(share / lane - 1e-9))) if layout == "lanes" else 1


def shares(layout: Layout, queues: Sequence[float], shards: int, seed: int, lane: float) -> Shares:
    """Return what each shard has of jobs in queues of these sizes; `seed` makes the queues' names.

    Ids are many, so a hash of them spreads jobs evenly: each shard has as much.
    """
    tokens = [0.0] * shards
    for number, share in enumerate(queues):
        first = shard_of(f"{seed}.queue-{number}", shards)
        spread = lanes(layout, share, shards, lane)
        for one in range(first, first + spread):
            tokens[one % shards] += share / spread
    return Shares(tuple(tokens) if layout == "queue" else (1 / shards,) * shards, tuple(tokens))
