"""The handling of messages that are due: the loop that takes them, and what is done when a job's own are."""
