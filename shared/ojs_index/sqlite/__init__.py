"""The read model: an SQLite file that is made from the records, and can be made again at any time (docs/adr/006)."""
