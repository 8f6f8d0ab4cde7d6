"""The official clients, and how a part of the API says what they read beside its answers (docs/clients.md)."""
