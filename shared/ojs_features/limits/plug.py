"""The places where limits are plugged into the server."""

from __future__ import annotations

from typing import Final

from ojs_engine.store.store import FeatureGates, Store
from ojs_engine.wire.system.extensions import Extension
from ojs_features.limits.asking import LIMITED_LANE
from ojs_features.limits.backup import BACKUP
from ojs_features.limits.grants import GRANTS
from ojs_features.limits.jobs import EXTRAS
from ojs_features.limits.limits import Limits
from ojs_features.limits.loop import blocked_jobs_loop
from ojs_features.limits.metrics import LIMITED
from ojs_features.limits.permits import limit_reader
from ojs_features.limits.routes import PART
from ojs_features.plug import Feature


async def _removed(store: Store, scope: str) -> None:
    """Have a limit checked whose record was removed: jobs may wait for it."""
    await store.of(Limits).permits.send_note(scope)


LIMITS: Final = Feature(
    name="limits",
    parts=(PART,),
    extensions=(Extension("rate-limiting", capability="rate_limiting"),),
    gates=FeatureGates(lanes=LIMITED_LANE, make=Limits),
    loops=(lambda store, _settings: blocked_jobs_loop(store),),
    jobs=(EXTRAS,),
    records=(limit_reader,),
    removed={"limit": _removed},
    backup=BACKUP,
    grants=GRANTS,
    metrics=(LIMITED,),
)
