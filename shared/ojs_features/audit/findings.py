"""The check of the audit: whether it goes back as far as is promised."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ojs_engine.base.wording import duration
from ojs_engine.operations.finding import Finding, problem, warning
from ojs_engine.store.store import Store
from ojs_features.audit.fill import Fill, audit_fill
from ojs_index.asking.client import Queries

_SYSTEM: Final = "/system"


async def look(store: Store, _queries: Queries) -> Iterable[Finding]:
    """Ask how full it is. Raises OjsError backend_unavailable."""
    return findings(await audit_fill(store.nats, store.config, store.clock.now()))


def findings(fill: Fill) -> Iterator[Finding]:
    """Whether entries leave before their time, or are about to."""
    age, promised = (duration(ms / 1_000) for ms in (fill.age_ms, fill.promised_ms))
    remedy = (
        "see who acts so often ('ojs-nats audit --since 1h'); then give it more room: "
        "'nats stream edit OJS_AUDIT --max-msgs N' (docs/audit.md)"
    )
    if fill.rolls_over:
        yield problem(
            "audit",
            f"the audit goes back {age} alone, and {promised} are promised: it is full",
            "each new entry takes the oldest one's place, so that acts can't be traced any more",
            remedy,
            _SYSTEM,
        )
    elif fill.nearly_full:
        yield warning(
            "audit",
            f"the audit has {fill.entries:,} of {fill.most:,} entries and goes back {age}",
            f"once it is full, entries leave before their {promised}",
            remedy,
            _SYSTEM,
        )
