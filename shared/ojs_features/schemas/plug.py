"""The places where schemas are plugged into the server."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from ojs_engine.domain.job import Job
from ojs_engine.jetstream.grants import FeatureGrants
from ojs_engine.operations.job_checks import CheckedTypes, FeatureCheck, JobWarning
from ojs_engine.store.store import Store
from ojs_engine.wire.system.extensions import Extension
from ojs_features.plug import Feature
from ojs_features.schemas.metrics import VIOLATIONS
from ojs_features.schemas.registry import Schemas, schema_reader
from ojs_features.schemas.routes import PART
from ojs_index.followed import Followed


def _types(store: Store) -> CheckedTypes:
    return store.of(Schemas).checked


async def _check(store: Store, draft: Job) -> Sequence[JobWarning]:
    return await store.of(Schemas).check(draft)


SCHEMAS: Final = Feature(
    name="schemas",
    parts=(PART,),
    extensions=(Extension("schema-registry", capability="schema_validation"),),
    job_checks=(FeatureCheck(types=_types, asks=attrgetter("schema"), check=_check),),
    records=(schema_reader,),
    followed=(Followed(reader=schema_reader),),
    metrics=(VIOLATIONS,),
    grants=FeatureGrants(writes={"gateway": (schema_reader.kind,)}),
)
