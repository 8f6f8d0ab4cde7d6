"""Questions to the index: lists, statistics, counts."""
