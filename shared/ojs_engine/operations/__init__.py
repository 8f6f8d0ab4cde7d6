"""What every binding offers, in the caller's words: use cases over the store and the read model, without HTTP or JSON."""
