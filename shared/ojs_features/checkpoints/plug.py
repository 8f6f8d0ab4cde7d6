"""The places where checkpoints are plugged into the server."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, Final, NamedTuple

from ojs_api.checkpoints import SAVE
from ojs_engine.api.job_extras import Inputs
from ojs_engine.domain.job import Job
from ojs_engine.domain.transitions.result import Transition
from ojs_engine.jetstream.grants import FeatureGrants
from ojs_engine.store.store import Store
from ojs_engine.wire.system.extensions import Extension
from ojs_features.checkpoints.bodies import checkpoint_in_job
from ojs_features.checkpoints.routes import PART
from ojs_features.checkpoints.rules import CheckpointRecord
from ojs_features.checkpoints.store import Checkpoints, checkpoint_reader
from ojs_features.plug import Feature


def _ended(store: Store, ending: Transition) -> None:
    """Have the checkpoint of a job that has ended leave soon."""
    store.of(Checkpoints).ended(ending.job.id)


class _Saved(NamedTuple):
    """A checkpoint that goes along with a fetched job."""

    record: CheckpointRecord

    @property
    def size(self) -> int:
        return len(self.record.state) + len(self.record.metadata)

    def put(self, answer: dict[str, Any], *, brief: bool) -> None:  # noqa: ARG002  # there is nothing to leave out
        answer["checkpoint"] = checkpoint_in_job(self.record)


async def _input(store: Store, job: Job) -> _Saved | None:
    """Return what an earlier attempt has saved. Raises OjsError unreadable_record, backend_unavailable."""
    found = await store.of(Checkpoints).last(job.id)
    return None if found is None else _Saved(found)


CHECKPOINTS: Final = Feature(
    name="checkpoints",
    parts=(PART,),
    extensions=(Extension("durable-execution"),),
    inputs=Inputs(asks=attrgetter("checkpoint"), of=_input, what="what an earlier attempt has saved"),
    ends={"checkpoint": _ended},
    records=(checkpoint_reader,),
    grants=FeatureGrants(writes={"gateway": (checkpoint_reader.kind,)}, workers=(SAVE.name,)),
)
