"""Keys of the API, sessions of browsers, and who is let in."""
