"""How new jobs get into the store."""
