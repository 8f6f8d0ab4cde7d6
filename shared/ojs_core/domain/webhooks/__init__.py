"""Webhooks: subscriptions, signatures, and what follows from an answer (ojs-webhooks)."""
