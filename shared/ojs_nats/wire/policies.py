"""`rate_limit`: checked in shape here, kept as sent in `Job.rate_limit`, echoed, not enforced."""

from __future__ import annotations

from typing import Any

from ojs_nats.errors import invalid
from ojs_nats.wire.fields import shown

__all__ = ["check_rate_limit"]


def check_rate_limit(value: dict[str, Any], path: str) -> None:
    """A rate limit: its numbers are above 0. Raises invalid_request."""
    for name, given in value.items():
        if type(given) in (int, float) and given <= 0:
            raise invalid(f"{path}.{name}", f"{path}.{name} must be more than 0, not {shown(given)}")
