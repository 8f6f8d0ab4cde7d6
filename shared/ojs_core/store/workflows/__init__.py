"""Workflows: the record that progresses, the definition that never changes, the jobs of both."""
