"""The bucket: reading records, and the protocols that write them (docs/adr/004)."""
