"""Permissions of services on NATS for workflows."""

from __future__ import annotations

from typing import Final

from ojs_engine.jetstream.grants import FeatureGrants
from ojs_engine.jetstream.subjects import ANY, StoreConfig
from ojs_features.workflows.subjects import STEPS, Subjects

_KINDS: Final = ("workflow", "wfdef", "wfres")
_TIMERS: Final = frozenset({"gateway", "coordinator", "projector"})
"""Services that go on with workflows."""


def _publishes(config: StoreConfig, role: str) -> list[str]:
    """Return the timers, for services that go on with workflows."""
    return [Subjects(config).workflow_timer(ANY, ANY)] if role in _TIMERS else []


GRANTS: Final = FeatureGrants(
    writes={"gateway": _KINDS, "scheduler": ("workflow",), "coordinator": _KINDS, "projector": ("workflow",)},
    publishes=_publishes,
    durables={"coordinator": {STEPS: lambda config: config.notes("workflow")}},
)
