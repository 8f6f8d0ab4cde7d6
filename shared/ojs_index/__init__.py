"""The index of all records: how it is made from their feed, what is asked of it, what is relayed and repaired by it."""
