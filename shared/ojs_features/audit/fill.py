"""How full the audit is, and whether it goes back as far as is promised."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from ojs_engine.jetstream.api import ask
from ojs_engine.jetstream.connection import Connection
from ojs_engine.jetstream.contents import unix_ms
from ojs_engine.jetstream.subjects import StoreConfig

_NEARLY: Final = 0.8
_NS_A_MS: Final = 1_000_000
_AT_ITS_END: Final = 0.99


class Fill(Struct, frozen=True, kw_only=True):
    """Entries and the most there may be (0: any number); the age of the oldest and the promised one (ms)."""

    entries: int
    most: int
    age_ms: int
    promised_ms: int

    @property
    def ratio(self) -> float:
        return self.entries / self.most if self.most > 0 else 0.0

    @property
    def nearly_full(self) -> bool:
        return _NEARLY < self.ratio < _AT_ITS_END

    @property
    def rolls_over(self) -> bool:
        """Whether entries leave before their time."""
        return self.ratio >= _AT_ITS_END and self.age_ms < self.promised_ms * _AT_ITS_END


async def audit_fill(nats: Connection, config: StoreConfig, now: int) -> Fill:
    """Ask for it; `now` is server time in Unix ms. Raises OjsError backend_unavailable."""
    info = await ask(nats, f"STREAM.INFO.{config.audit_stream}", None, "to say how full the audit is")
    state, limits = info["state"], info["config"]
    entries = int(state["messages"])
    return Fill(
        entries=entries,
        most=max(0, int(limits.get("max_msgs", 0))),
        age_ms=max(0, now - unix_ms(state["first_ts"])) if entries else 0,
        promised_ms=int(limits.get("max_age", 0)) // _NS_A_MS,
    )
