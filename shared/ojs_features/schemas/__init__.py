"""Schemas that arguments of jobs are held to (ojs-schema-registry)."""
