"""Jobs that have failed for good, and what operators do with them (ojs-dead-letter)."""
