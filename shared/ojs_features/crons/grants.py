"""Permissions of services on NATS for crons."""

from __future__ import annotations

from typing import Final

from ojs_engine.jetstream.grants import FeatureGrants
from ojs_engine.jetstream.subjects import ANY, StoreConfig
from ojs_features.crons.subjects import CONSUMER, timer_subject

_WRITERS: Final = ("gateway", "scheduler", "projector")


def _publishes(config: StoreConfig, role: str) -> list[str]:
    return [timer_subject(config, ANY, ANY)] if role in _WRITERS else []


GRANTS: Final = FeatureGrants(
    writes=dict.fromkeys(_WRITERS, ("cron",)),
    publishes=_publishes,
    durables={"scheduler": {CONSUMER: lambda config: config.due(CONSUMER, ANY)}},
)
