"""Jobs: as clients push, search and change them, and as they read them."""
