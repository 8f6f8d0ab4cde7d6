"""What is wrong with a system, judged by facts alone: pure functions from facts to sentences (docs/adr/018)."""
