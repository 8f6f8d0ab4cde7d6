"""Permissions of services on NATS for limits: services that change jobs take permits and give them back."""

from __future__ import annotations

from typing import Final

from ojs_engine.jetstream.grants import FeatureGrants
from ojs_engine.jetstream.subjects import ANY, StoreConfig, Wildcard
from ojs_features.limits.subjects import Subjects

_ROLES: Final = ("gateway", "scheduler", "reaper", "coordinator", "projector")
_SCOPE: Final = Wildcard("*.*")
"""Any limit: a kind and a name."""


def _publishes(config: StoreConfig, role: str) -> list[str]:
    """Return the timers and notes of limits."""
    return [Subjects(config).timer(_SCOPE, ANY), config.note("limit", _SCOPE, ANY)] if role in _ROLES else []


GRANTS: Final = FeatureGrants(
    writes=dict.fromkeys(_ROLES, ("limit",)),
    publishes=_publishes,
    durables={"scheduler": {"limit": lambda config: config.notes("limit")}},
)
