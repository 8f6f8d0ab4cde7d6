"""Statistics: what clients ask of them, and as they read them."""
