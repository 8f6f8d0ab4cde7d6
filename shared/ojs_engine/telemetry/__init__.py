"""What a process counts, logs and traces."""
