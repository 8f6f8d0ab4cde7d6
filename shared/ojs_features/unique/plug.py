"""The places where unique jobs are plugged into the server."""

from __future__ import annotations

from typing import Final

from ojs_engine.jetstream.grants import FeatureGrants
from ojs_engine.plug import Feature
from ojs_engine.read.followed import Followed, Question
from ojs_features.unique.index import QUESTION, TABLE, UniqueAsk, unique_jobs
from ojs_features.unique.left_locks import LeftLocks
from ojs_features.unique.locks import lock_reader
from ojs_features.unique.routes import PART
from ojs_features.unique.uniqueness import Uniqueness

_WRITERS: Final = ("gateway", "scheduler", "reaper", "coordinator", "projector")
"""Whoever may push or end a job."""

UNIQUE: Final = Feature(
    name="unique",
    parts=(PART,),
    capabilities=("unique_jobs",),
    locks=Uniqueness,
    records=(lock_reader,),
    followed=(
        Followed(
            reader=lock_reader,
            table=TABLE,
            tidying=LeftLocks,
            questions={QUESTION: Question(UniqueAsk, unique_jobs)},
        ),
    ),
    grants=FeatureGrants(writes=dict.fromkeys(_WRITERS, (lock_reader.kind,))),
)
