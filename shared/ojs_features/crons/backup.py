"""Crons in a backup. The ticks of a restored entry that have passed are left out."""

from __future__ import annotations

from typing import Final

import msgspec

from ojs_engine.jetstream.subjects import ANY, StoreConfig
from ojs_engine.store.backup import Counted, FeatureBackup, Kept, Restoring, RevivedRecord
from ojs_engine.store.records.records import Records
from ojs_features.crons import changes
from ojs_features.crons.store import cron_alarm, cron_reader
from ojs_features.crons.subjects import cron_subject


def _revive(token: str, kept: Kept, restoring: Restoring) -> RevivedRecord | None:
    """Return an entry as it is restored, with its timer; None for one that can't be read."""
    cron = cron_reader.read(token, kept.sequence, kept.data)
    if cron is None or cron.deleted:
        return None if cron is None else RevivedRecord(kept.data)
    counts = ["crons"]
    step = changes.pass_over(cron, restoring.moment())
    if step is not None:
        cron = step.record
        counts.append("passed_over")
    hints = () if cron.timer is None else (cron_alarm(restoring.config, token, cron.timer),)
    return RevivedRecord(msgspec.json.encode(cron), hints, counts)


async def _active(records: Records, config: StoreConfig) -> int:
    """Count the entries that fire once a restored system is released."""
    name = len(cron_subject(config, ""))
    raw = await records.many_raw(await records.subjects(cron_subject(config, ANY)))
    found = (cron_reader.read(subject[name:], *one) for subject, one in raw.items() if one[1])
    return sum(one is not None and one.enabled and not one.deleted for one in found)


BACKUP: Final = FeatureBackup(
    hints=frozenset({("due", "cron")}),
    revive={"cron": _revive},
    counted={
        "crons": Counted(noun="cron", kind="crons", acting=_active),
        "passed_over": Counted(
            noun="cron", kind="passed_over", remark="crons had ticks that are over: they go on with their next"
        ),
    },
)
