"""Workflows: a definition in any dialect to its graph, and a workflow as clients read it."""
