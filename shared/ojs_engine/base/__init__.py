"""What every layer may use: errors, ids, times, the first steps of reading fields. Knows nothing of jobs or NATS."""
