"""Lists and numbers of the index as the answers of the API show them."""
