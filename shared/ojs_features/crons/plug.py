"""The places where crons are plugged into the server."""

from __future__ import annotations

from typing import Final

from ojs_engine.api.guard import KeyEnd
from ojs_features.crons.backup import BACKUP
from ojs_features.crons.events import source
from ojs_features.crons.findings import look
from ojs_features.crons.grants import GRANTS
from ojs_features.crons.index import QUESTION, TABLE, LateCronsAsk, late_crons
from ojs_features.crons.keys import crons_of
from ojs_features.crons.loop import cron_loop
from ojs_features.crons.repairs import LostTimers
from ojs_features.crons.routes import PART
from ojs_features.crons.store import cron_reader
from ojs_features.plug import Check, Feature
from ojs_index.followed import Followed, Question

CRONS: Final = Feature(
    name="crons",
    parts=(PART,),
    capabilities=("cron", "cron_jobs"),
    loops=(cron_loop,),
    records=(cron_reader,),
    followed=(
        Followed(
            reader=cron_reader,
            table=TABLE,
            events=source,
            repairs=LostTimers,
            questions={QUESTION: Question(LateCronsAsk, late_crons)},
        ),
    ),
    backup=BACKUP,
    grants=GRANTS,
    checks=(Check(name="crons", look=look),),
    key_ends=(KeyEnd(member="crons", change=crons_of, only_names=True),),
)
