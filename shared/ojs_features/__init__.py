"""Features of the server, one in each folder. `all.py` lists them."""
