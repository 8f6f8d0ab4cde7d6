"""What the gateway says of itself and of the system, beside what features say."""
