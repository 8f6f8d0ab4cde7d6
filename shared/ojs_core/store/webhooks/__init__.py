"""Webhook subscriptions, and the deliveries that did not go through at once."""
