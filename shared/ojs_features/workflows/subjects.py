"""Subjects of what workflows have on NATS."""

from __future__ import annotations

from typing import Final, NamedTuple

from ojs_engine.jetstream.subjects import StoreConfig, Wildcard, check_names

STEPS: Final = "coordinator-steps"
"""The consumer of notes that coordinators share."""


class Subjects(NamedTuple):
    """Subjects of one namespace. Each raises invalid_request for a name that can't be part of one."""

    config: StoreConfig

    def workflow(self, workflow_id: str) -> str:
        """Subject of a workflow's record."""
        return self.config.record("workflow", workflow_id)

    def definition(self, workflow_id: str, op: str, part: str) -> str:
        """Subject of a part of a workflow that never changes: `shape`, or the number of a chunk of job templates.

        `op` is that of the try that wrote it. Without one, `REST` as the part is what all tries wrote.
        """
        check_names(workflow_id, op, part)
        return self.config.record("wfdef", Wildcard(_of_try(workflow_id, op, part)))

    def step_result(self, workflow_id: str, op: str, node: int | str) -> str:
        """Subject of the result of a workflow's job, kept for later ones; `op` as in `definition`."""
        part = node if isinstance(node, str) else str(node)
        check_names(workflow_id, op, part)
        return self.config.record("wfres", Wildcard(_of_try(workflow_id, op, part)))

    def workflow_timer(self, workflow_id: str, op: str) -> str:
        """Subject of the timer of a workflow."""
        check_names(workflow_id, op)
        return f"{self.config.namespace}.timer.workflow.{workflow_id}.{op}"


def _of_try(workflow_id: str, op: str, part: str) -> str:
    return f"{workflow_id}.{op}.{part}" if op else f"{workflow_id}.{part}"
