"""What is looked for and put right in the background: lost hints, and records that are too many."""
