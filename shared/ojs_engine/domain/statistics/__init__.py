"""Statistics over time: what happened in a queue, minute by minute and hour by hour, and how long it took (docs/adr/018)."""
