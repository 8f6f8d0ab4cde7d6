"""The places where keys are plugged into the server."""

from __future__ import annotations

from typing import Final

from ojs_engine.jetstream.grants import FeatureGrants
from ojs_features.access.findings import look
from ojs_features.access.gatekeeper import Gatekeeper
from ojs_features.access.on_nats import KeysOnNats
from ojs_features.access.routes import PART
from ojs_features.access.store import key_reader
from ojs_features.plug import Check, Feature

ACCESS: Final = Feature(
    name="access",
    parts=(PART,),
    lasting=(key_reader,),
    grants=FeatureGrants(writes={"gateway": ("key",)}),
    checks=(Check(name="keys", look=look),),
    guard=Gatekeeper,
    on_nats={"keys": KeysOnNats},
)
