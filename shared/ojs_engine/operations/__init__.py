"""What every binding offers, in the caller's words: use cases over the store, without HTTP or JSON."""
