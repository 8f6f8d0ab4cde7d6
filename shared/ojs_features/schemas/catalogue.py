"""All schemas that are registered, and which of them a job is held to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from ojs_api.schemas import Mode
from ojs_engine.base.errors import OjsError, invalid, not_found
from ojs_engine.domain.job import Job
from ojs_engine.domain.versions import parse_version, version_of
from ojs_features.schemas.compatibility import check_compatible
from ojs_features.schemas.record import SchemaRecord


class Catalogue:
    """The schemas by URI, and by job type the versions of each, the newest first."""

    def __init__(self, records: Iterable[SchemaRecord]) -> None:
        self.uris: dict[str, SchemaRecord] = {}
        self._types: dict[str, list[SchemaRecord]] = {}
        for record in sorted((one for one in records if not one.deleted), key=lambda one: one.order, reverse=True):
            self.uris[record.uri] = record
            self._types.setdefault(record.type, []).append(record)

    @property
    def types(self) -> Mapping[str, Sequence[SchemaRecord]]:
        return self._types

    def __len__(self) -> int:
        return len(self.uris)

    def all(self) -> list[SchemaRecord]:
        """By type, the newest version of each first."""
        return [record for name in sorted(self._types) for record in self._types[name]]

    def versions(self, job_type: str) -> Sequence[SchemaRecord]:
        """The newest first. Raises OjsError not_found."""
        found = self._types.get(job_type)
        if not found:
            raise not_found("schema", job_type)
        return found

    def version(self, job_type: str, text: str) -> SchemaRecord:
        """Raises OjsError not_found, invalid_request."""
        order = parse_version(text)
        found = next((record for record in self._types.get(job_type, ()) if record.order == order), None)
        if found is None:
            raise not_found("schema", f"{job_type}/{text}")
        return found

    def at(self, uri: str) -> SchemaRecord:
        """Raises OjsError not_found."""
        found = self.uris.get(uri)
        if found is None:
            raise not_found("schema", uri)
        return found

    def of(self, draft: Job) -> SchemaRecord | None:
        """What a job is held to: the schema that it names, else the version that it names of its type's, else the
        newest of those. None if there is none.
        """
        if draft.schema is not None:
            return self.uris.get(draft.schema)
        versions = self._types.get(draft.type)
        if versions is None:
            return None
        named = version_of(draft.version)
        if named is None:
            return versions[0]
        return next((record for record in versions if record.order == named), None)

    def admitted(self, wanted: SchemaRecord, most: int) -> SchemaRecord:
        """A new version with what it leaves to the version before it. Raises OjsError: conflict if version or URI are
        taken, invalid_request if it doesn't agree with the version before, or there are too many.
        """
        versions = self._types.get(wanted.type, [])
        if any(record.order == wanted.order for record in versions):
            raise taken(f"version {wanted.version} of {wanted.type}", wanted)
        if wanted.uri in self.uris:
            raise taken(f"the URI {wanted.uri}", wanted)
        if len(self) >= most:
            raise invalid("schema", f"there are {len(self):,} schemas, the most that are kept; delete some that aren't used")
        before = next((record for record in versions if record.order < wanted.order), None)
        if before is None:
            return wanted
        mode, compatibility = wanted.mode or before.mode, wanted.compatibility or before.compatibility
        wanted = replace(wanted, mode=mode, compatibility=compatibility)
        check_compatible(wanted, before)
        return wanted


def mode_of(record: SchemaRecord, draft: Job, of_queue: Mode | None) -> Mode:
    """What becomes of a job that doesn't fit: the type's word comes first, then the queue's. A job that names its
    schema asks to be held to it (ojs-core §7.1); others are warned of, so that a schema can be added without harm
    (ojs-schema-registry §7.2).
    """
    return record.mode or of_queue or ("strict" if draft.schema is not None else "warn")


def taken(what: str, wanted: SchemaRecord) -> OjsError:
    """409 for a version or URI that another schema has (SR-006)."""
    return OjsError(
        "conflict",
        f"{what} is registered already",
        hint="A schema doesn't change: register another version, or delete this one first.",
        details={"uri": wanted.uri, "type": wanted.type, "version": wanted.version},
        canonical="SCHEMA_EXISTS",
    )
