"""Webhooks: the server sends events to the URLs that have subscribed to them."""
