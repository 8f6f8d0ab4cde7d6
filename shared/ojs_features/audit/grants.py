"""Permissions of services on NATS for the audit."""

from __future__ import annotations

from typing import Final

from ojs_engine.jetstream.grants import FeatureGrants
from ojs_engine.jetstream.subjects import StoreConfig


def _publishes(config: StoreConfig, role: str) -> list[str]:
    """Return what a service publishes: gateways write entries, and read them."""
    return [config.audit, f"$JS.API.DIRECT.GET.{config.audit_stream}"] if role == "gateway" else []


GRANTS: Final = FeatureGrants(publishes=_publishes)
