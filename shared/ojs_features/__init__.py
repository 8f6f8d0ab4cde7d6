"""Features of the server, one in each folder. `all.py` lists them, `plug.py` has what one is."""
