"""Results that are records of their own: written ahead of the record that names them, read with it (docs/adr/020)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from ojs_engine.base.portions import in_portions
from ojs_engine.domain.job import Job
from ojs_engine.jetstream.reading import RecordReader
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_engine.store.records.records import Records

_AT_ONCE: Final = 8

blob_reader: Final = RecordReader("blob", msgspec.json.Decoder(Raw).decode, foreign=True)


class Blobs:
    """Their subject carries the op of the ack, so one that is refused leaves alone what the faster one wrote."""

    def __init__(self, records: Records, config: StoreConfig) -> None:
        self._records = records
        self._config = config

    async def whole(self, job: Job) -> Job:
        """The job with its result; without, and without its name, if that has left. For reading, not for writing.

        Raises OjsError backend_unavailable.
        """
        blob = job.result_blob
        if blob is None:
            return job
        found = await self._records.latest_raw(self._config.result(job.id, blob.op))
        result = None
        if found is not None and found[1]:
            result = blob_reader.read(f"{job.id}.{blob.op}.result", *found)
        return replace(job, result_blob=None) if result is None else replace(job, result=result)

    async def wholes(self, jobs: Iterable[Job], room: int) -> list[Job]:
        """Several jobs as `whole` gives them, in order, as long as their results have room (bytes); the rest as they are."""
        found = list(jobs)
        places = []
        for place, job in enumerate(found):
            size = 0 if job.result_blob is None else job.result_blob.size
            if 0 < size <= room:
                room -= size
                places.append(place)
        for place, job in zip(places, await in_portions([found[at] for at in places], self.whole, _AT_ONCE), strict=True):
            found[place] = job
        return found
