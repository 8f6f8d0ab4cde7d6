"""Workflows: definitions, their graph, and how they progress; all pure (requirements §16).

The storing of it is `ojs_nats.store.workflows`.
"""

from __future__ import annotations

from ojs_nats.workflows.parse import Definition, parse_workflow

__all__ = ["Definition", "parse_workflow"]
