"""Workflows: the graph of their jobs, and how they progress (ojs-workflows)."""
