"""How much may wait: bounded queues, tokens that count no more, and the room that NATS has left."""
