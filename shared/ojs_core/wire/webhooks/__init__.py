"""Webhooks as clients set and read them (ojs-webhooks)."""
