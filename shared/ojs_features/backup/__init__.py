"""Backups: what is stored, in files, and their way back into NATS (docs/adr/085)."""
