"""The check of webhooks: subscriptions whose receivers get nothing, or get it late."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import quote

from ojs_engine.operations.finding import SHOWN, Finding, problem, warning
from ojs_engine.store.store import Store
from ojs_features.webhooks.records import DeliveryRecord, Subscription, TargetHealth
from ojs_features.webhooks.subscriptions import Webhooks
from ojs_index.asking.client import Queries

_IN_A_ROW: Final = 5


async def look(store: Store, _queries: Queries) -> Iterable[Finding]:
    """Read the subscriptions and how their deliveries go. Raises OjsError backend_unavailable."""
    webhooks = store.of(Webhooks)
    subscriptions = await webhooks.all()
    health = await webhooks.health_of(subscriptions)
    gone = any(one.dead for one in health.values())
    dead = await webhooks.deliveries.page(None, "dead", None, 0, SHOWN) if gone else None
    return findings(subscriptions, health, () if dead is None else dead.deliveries)


def findings(
    subscriptions: Sequence[Subscription], health: Mapping[str, TargetHealth], dead: Sequence[DeliveryRecord]
) -> Iterator[Finding]:
    """Whether somebody was not told what they wanted to hear. `dead` are some of the deliveries that were given up."""
    for one in subscriptions:
        found = health.get(one.id, TargetHealth())
        link = f"/webhooks?subscription={quote(one.id)}"
        if one.paused is not None:
            why = "its receiver said that it is gone" if one.paused == "gone" else "no delivery went through for a day"
            yield problem(
                "webhooks",
                f"webhook {one.id} was paused: {why}",
                "it gets no events until it is active again",
                "mend the receiver, and set active again (docs/webhooks.md)",
                link,
            )
        elif one.active and found.in_a_row >= _IN_A_ROW:
            status = f", the last with status {found.last_status}" if found.last_status else ""
            yield warning(
                "webhooks",
                f"{found.in_a_row:,} deliveries of webhook {one.id} failed one after another{status}",
                "its receiver gets events late, and after a day none",
                "mend the receiver; failing deliveries are tried again by themselves (docs/webhooks.md)",
                link,
                found.in_a_row,
            )
    if dead:
        why = ", ".join(f"{one.id} ({one.error or one.last_status})" for one in dead[:SHOWN])
        yield warning(
            "webhooks",
            f"deliveries were given up: {why}",
            "their receivers have missed these events",
            "mend the receiver, and send them again (docs/webhooks.md)",
            f"/webhooks?subscription={quote(dead[0].subscription_id)}",
        )
