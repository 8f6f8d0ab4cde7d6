"""Who reads an answer (docs/clients.md)."""

from __future__ import annotations

from typing import Literal, NamedTuple

Reader = Literal["standard", "sdk", "cli", "ui"]
"""The official SDKs, the official command line, the official admin UI, and everybody else."""


class Dialect(NamedTuple):
    """How to answer one client."""

    content_type: str
    reader: Reader
    supported: bool
    """Whether the `OJS-Version` it asks for is one of ours: any 1.x, or none named."""
