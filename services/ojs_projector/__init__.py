"""The projector: follows the job records, publishes their lifecycle events and answers what is asked about many jobs."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Final

from ojs_projector.projector import Projector

if TYPE_CHECKING:
    from ojs_core.runtime.service import Service
    from ojs_core.runtime.settings import Settings
    from ojs_core.store.store import Store

_NICE: Final = 10


def build(store: Store, settings: Settings) -> Service:
    # Jobs come first: on a full machine the projector falls behind and sees fewer, later revisions.
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, _NICE)
    return Projector(
        store,
        settings.projector_data,
        searched=settings.searched_args,
        copied=settings.copied_jobs,
        dead_letters=settings.dead_letter_max_count,
    )
