"""The places where pools are plugged into the server."""

from __future__ import annotations

from typing import Final

from ojs_engine.jetstream.grants import FeatureGrants
from ojs_engine.wire.system.extensions import Extension
from ojs_features.plug import Feature
from ojs_features.pools.routes import PART
from ojs_features.pools.store import Pools, pool_reader
from ojs_index.followed import Followed

POOLS: Final = Feature(
    name="pools",
    parts=(PART,),
    extensions=(Extension("fair-scheduling", capability="fair_scheduling"),),
    order=Pools,
    records=(pool_reader,),
    followed=(Followed(reader=pool_reader),),
    grants=FeatureGrants(writes={"gateway": (pool_reader.kind,)}),
)
