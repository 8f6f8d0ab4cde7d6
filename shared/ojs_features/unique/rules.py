"""Duplicates of unique jobs: which jobs are some, and what a push is answered for them (ojs-unique-jobs §5, §7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from ojs_engine.base.errors import duplicate
from ojs_engine.domain.job import Job
from ojs_engine.domain.unique import UniquePolicy, policy_of


def counts(policy: UniquePolicy, key: str, existing: Job, now: int) -> bool:
    """Return whether a job under `policy` with fingerprint `key` duplicates `existing` at `now` (Unix ms; §7.4)."""
    if existing.unique_key != key or existing.deleted or existing.state not in policy.states:
        return False
    return policy.period_ms is None or now < existing.created_at + policy.period_ms


def existing_instead(draft: Job, existing: Sequence[Job]) -> Job | None:
    """Return the existing job that a push is answered with, None if the draft is to be stored. Raises OjsError duplicate."""
    on_conflict = policy_of(draft).on_conflict
    if not existing:
        return None
    match on_conflict:
        case "reject":
            raise duplicate(existing[0].id, existing[0].state, draft.unique_key)
        case "ignore":
            return existing[0]
        case "replace" | "replace_except_schedule":
            return None
        case unknown:
            assert_never(unknown)
