"""The server of itself: health, manifest, maintenance, what it is set to, records that it can't read."""
