"""Statistics over time: kept minute by minute and hour by hour, and read as series."""
