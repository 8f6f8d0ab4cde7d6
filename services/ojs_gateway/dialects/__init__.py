"""What official clients read beside the answers that everybody gets: one compatibility layer (docs/clients.md)."""
