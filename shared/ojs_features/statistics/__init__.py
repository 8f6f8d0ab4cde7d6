"""Statistics: totals of the system and their stream, kept minute by minute and hour by hour, and read as series."""
