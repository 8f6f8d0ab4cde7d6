"""Subjects and names of what webhooks have on NATS."""

from __future__ import annotations

from typing import Final, NamedTuple

from ojs_engine.jetstream.subjects import StoreConfig, Wildcard, check_names

CONSUMER: Final = "webhook-"
"""The beginning of the names of subscriptions' consumers."""


class Subjects(NamedTuple):
    """Subjects of one namespace. Each raises invalid_request for a name that can't be part of one."""

    config: StoreConfig

    def webhook(self, subscription_id: str) -> str:
        """Subject of a webhook subscription's record."""
        return self.config.record("webhook", subscription_id)

    def target(self, subscription_id: str) -> str:
        """Subject of the record that says how its deliveries have gone."""
        return self.config.record("target", subscription_id)

    def delivery(self, subscription_id: str, delivery_id: str) -> str:
        """Subject of the record of a delivery that was given up, or went through after a failure."""
        check_names(subscription_id, delivery_id)
        return self.config.record("delivery", Wildcard(f"{subscription_id}.{delivery_id}"))

    def delivery_timer(self, subscription_id: str, delivery_id: str) -> str:
        """Subject of a delivery that waits for its next attempt."""
        check_names(subscription_id, delivery_id)
        return f"{self.config.namespace}.timer.webhook.{subscription_id}.{delivery_id}"

    def delivery_due(self, subscription_id: str, delivery_id: str) -> str:
        """Subject of a delivery whose next attempt is due."""
        check_names(subscription_id, delivery_id)
        return f"{self.config.namespace}.due.webhook.{subscription_id}.{delivery_id}"

    def consumer(self, subscription_id: str) -> str:
        """Durable name of a subscription's consumers: of the event stream, and of its due deliveries."""
        check_names(subscription_id)
        return f"{CONSUMER}{subscription_id}"
