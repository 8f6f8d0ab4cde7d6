"""Subjects of what cron entries have on NATS."""

from __future__ import annotations

from typing import Final

from ojs_engine.jetstream.subjects import StoreConfig, check_names

CONSUMER: Final = "cron"
"""The consumer of due messages that schedulers share, and the service in their subjects."""


def cron_subject(config: StoreConfig, token: str) -> str:
    """Return the subject of an entry's record; `token` is its encoded name."""
    return config.record("cron", token)


def timer_subject(config: StoreConfig, token: str, op: str) -> str:
    """Return the subject of an entry's timer."""
    check_names(token, op)
    return f"{config.namespace}.timer.cron.{token}.{op}"


def due_subject(config: StoreConfig, token: str, op: str) -> str:
    """Return the subject of the message of a timer that has fired."""
    return config.due(CONSUMER, f"{token}_{op}")
