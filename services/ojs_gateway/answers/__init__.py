"""What the gateway says of itself, of the system and of queues, beside what features say."""
