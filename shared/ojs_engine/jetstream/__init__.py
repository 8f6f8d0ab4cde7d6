"""All that speaks NATS and knows nothing of jobs: the connection, subjects, streams, following, due messages, leases."""
