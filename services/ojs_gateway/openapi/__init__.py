"""The gateway's description of its own API."""
