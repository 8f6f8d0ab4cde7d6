"""The job of a run. Whoever makes it from the same record makes the same one, so it is created once."""

from __future__ import annotations

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from ojs_engine.base.times import format_ms
from ojs_engine.domain.job import Job
from ojs_features.crons.record import Cron, CronRun

_members = msgspec.json.Decoder(dict[str, Raw]).decode
_encode = msgspec.json.Encoder().encode


def job_of_run(record: Cron, run: CronRun) -> Job:
    """The draft of a run's job: the template, with its meta saying which entry and which tick it comes from (ojs-cron
    §6.3).

    Relative times of the template count from when the run was decided, which for a tick that was made up for is later
    than the tick.
    """
    assert run.job_id is not None
    meta = _members(record.draft.meta)
    meta["cron_name"] = Raw(_encode(record.name))
    meta["cron_triggered_at"] = Raw(_encode(format_ms(run.tick)))
    return replace(record.draft, id=run.job_id, meta=Raw(_encode(meta)), **record.draft.times_from(run.at))
