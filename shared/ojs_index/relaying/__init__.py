"""Publishing lifecycle events, by one projector at a time (docs/adr/007)."""
