"""The history of each job: its events, attempts and origin, read from its log; and recent failures of all jobs."""
