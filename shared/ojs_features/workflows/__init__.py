"""Workflows: jobs with an order (ojs-workflows)."""
