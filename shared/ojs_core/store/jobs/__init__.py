"""Jobs one by one, many as one, and many existing ones as one."""
