"""Unique jobs, as operators list them (docs/unique.md)."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from ojs_api.jobs import State
from ojs_api.members import QueueName, Uuid
from ojs_api.operations import Operation, Subject
from ojs_api.pages import NUMBERED, Indexed, Pagination


class UniqueJob(Struct, frozen=True, kw_only=True):
    """A fingerprint of a unique job, and the job that holds it.

    Attributes:
        key: The fingerprint.
    """

    key: str
    job_id: Uuid
    type: str
    queue: QueueName
    state: State


class UniqueJobPage(Indexed, frozen=True, kw_only=True, omit_defaults=True):
    """A page of the fingerprints, in order."""

    items: list[UniqueJob]
    pagination: Pagination


# fmt: off
FINGERPRINTS: Final = Operation(
    "listUniqueJobs", "GET /unique-jobs", "payloads", "List fingerprints of unique jobs",
    {200: UniqueJobPage}, "Those that jobs hold which have not ended.",
    query=NUMBERED,
)
# fmt: on
UNIQUE_JOBS: Final = Subject("Unique jobs", "Fingerprints that jobs hold", (FINGERPRINTS,))
