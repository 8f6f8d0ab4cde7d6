"""HTTP: from a request to a handler and back, the same for every route."""
