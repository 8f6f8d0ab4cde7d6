"""Dead letters: jobs that have failed for good and are kept."""

from __future__ import annotations

from ojs_api.dead_letters import DeadLetterRetention, DeadLetterStats, DeletedDeadLetters, RetriedDeadLetters

__all__ = ["DeadLetterRetention", "DeadLetterStats", "DeletedDeadLetters", "RetriedDeadLetters"]
