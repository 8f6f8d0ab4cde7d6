"""The places where unique jobs are plugged into the server."""

from __future__ import annotations

from typing import Final

from ojs_engine.domain.transitions.result import Transition
from ojs_engine.jetstream.grants import FeatureGrants
from ojs_engine.store.store import Store
from ojs_features.plug import Feature
from ojs_features.unique.index import QUESTION, TABLE, UniqueAsk, unique_jobs
from ojs_features.unique.left_locks import LeftLocks
from ojs_features.unique.locks import lock_reader
from ojs_features.unique.routes import PART
from ojs_features.unique.uniqueness import Uniqueness
from ojs_index.followed import Followed, Question

_WRITERS: Final = ("gateway", "scheduler", "reaper", "coordinator", "projector")
"""Whoever may push or end a job."""


def _ended(store: Store, ending: Transition) -> None:
    """Have the lock of a job that has ended leave soon after it."""
    store.of(Uniqueness).locks.ended(ending)


UNIQUE: Final = Feature(
    name="unique",
    parts=(PART,),
    capabilities=("unique_jobs",),
    locks=Uniqueness,
    ends={"lock": _ended},
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
