"""Jobs that are there, one by one and many as one."""
