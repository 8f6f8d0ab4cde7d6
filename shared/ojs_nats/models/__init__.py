"""What the server answers, as frozen structs by subject. Times are UTC, what the server left out is None or empty."""
