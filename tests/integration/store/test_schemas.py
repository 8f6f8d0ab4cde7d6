"""Schemas that several processes register and heed."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from integration.conftest import OpenStore
from integration.samples import KINDS, draft, refusal, set_up
from ojs_engine.base.errors import OjsError
from ojs_engine.store.store import Store
from ojs_features.schemas.record import SchemaRecord
from ojs_features.schemas.registry import Schemas
from ojs_features.schemas.validator import Validator
from support.nats import NatsServer
from support.outside import Send, tapped
from support.waiting import eventually

STRINGS = {"items": {"type": "string"}}
NUMBERS = {"items": {"type": "number"}}
MOST = 1_000


def schema(job_type: str, document: Any, version: str = "1", **members: Any) -> SchemaRecord:
    uri = members.pop("uri", f"urn:ojs:schema:{job_type}:v{version}")
    return SchemaRecord(uri=uri, type=job_type, version=version, document=Raw(msgspec.json.encode(document)), **members)


async def known(store: Store, uri: str, *, there: bool = True) -> None:
    """Wait until a process has heard of a schema, or that it is gone."""

    async def heard() -> bool:
        return (uri in store.of(Schemas)._known.uris) is there

    await store.of(Schemas).check(draft(type="anything"))
    await eventually(heard)


async def test_what_one_process_registers_all_heed(store: Store, other: Store, queue: str) -> None:
    assert await other.of(Schemas).check(draft(type=queue)) == ()
    record = await store.of(Schemas).register(schema(queue, STRINGS, mode="strict"), MOST)
    with refusal("schema_validation"):
        await store.of(Schemas).check(draft(type=queue))
    await known(other, record.uri)
    with pytest.raises(OjsError) as refused:
        await other.of(Schemas).check(draft(type=queue))
    assert refused.value.details["schema"] == record.uri
    assert refused.value.details["validation_errors"] == [
        {"path": "args[0]", "message": 'the value is not of type "string"', "schema_path": "items/type"}
    ]
    await other.of(Schemas).delete(lambda all_of_them: all_of_them.at(record.uri))
    await known(store, record.uri, there=False)
    assert await store.of(Schemas).check(draft(type=queue)) == ()


async def test_whoever_reads_sees_what_any_other_has_written_before(store: Store, other: Store, queue: str) -> None:
    for version in ("1", "2", "3"):
        await store.of(Schemas).register(schema(queue, STRINGS, version), MOST)
        assert (await other.of(Schemas).catalogue()).versions(queue)[0].version == version
    await store.of(Schemas).delete(lambda all_of_them: all_of_them.version(queue, "3"))
    assert (await other.of(Schemas).catalogue()).versions(queue)[0].version == "2"


async def test_of_two_who_register_a_version_or_a_uri_at_once_one_gets_it(store: Store, other: Store, queue: str) -> None:
    for turn in range(10):
        pairs = (
            [schema(f"{queue}.v{turn}", document) for document in (STRINGS, NUMBERS)],
            [schema(f"{queue}.u{turn}{side}", STRINGS, uri=f"urn:{queue}:{turn}") for side in "ab"],
        )
        for pair in pairs:
            writes = (store.of(Schemas).register(pair[0], MOST), other.of(Schemas).register(pair[1], MOST))
            ended = await asyncio.gather(*writes, return_exceptions=True)
            assert [one.code for one in ended if isinstance(one, OjsError)] == ["conflict"], ended


async def test_the_limit_on_their_number_holds_for_all_processes(nats_server: NatsServer, open_store: OpenStore) -> None:
    stores = [await open_store(nats_server.url) for _ in range(2)]
    writes = [stores[number % 2].of(Schemas).register(schema(f"type.t{number}", {}), 3) for number in range(6)]
    ended = await asyncio.gather(*writes, return_exceptions=True)
    assert sum(isinstance(one, OjsError) and one.code == "invalid_request" for one in ended) == 3
    await stores[0].of(Schemas).delete(lambda all_of_them: all_of_them.all()[0])
    await stores[1].of(Schemas).register(schema("type.more", {}), 3)


async def test_a_version_that_was_deleted_can_be_registered_anew_with_another_document(
    store: Store, other: Store, queue: str
) -> None:
    first = await store.of(Schemas).register(schema(queue, STRINGS, mode="strict"), MOST)
    await known(other, first.uri)
    with refusal("schema_validation"):
        await other.of(Schemas).check(draft(type=queue))
    await store.of(Schemas).delete(lambda all_of_them: all_of_them.at(first.uri))
    second = await store.of(Schemas).register(schema(queue, NUMBERS, mode="strict"), MOST)

    async def heeded() -> bool:
        found = other.of(Schemas)._known.uris.get(second.uri)
        return found is not None and found.op == second.op

    await eventually(heeded)
    assert await other.of(Schemas).check(draft(type=queue)) == ()


async def test_settings_of_a_version_change_and_its_document_does_not(store: Store, queue: str) -> None:
    wanted = schema(queue, STRINGS)
    created, first = await store.of(Schemas).put(wanted, MOST)
    again, second = await store.of(Schemas).put(schema(queue, STRINGS, mode="strict"), MOST)
    assert (created, again, first.mode, second.mode) == (True, False, None, "strict")
    assert second.created_at == first.created_at
    with refusal("conflict"):
        await store.of(Schemas).put(schema(queue, NUMBERS), MOST)


async def test_a_queue_says_what_becomes_of_jobs_where_their_schema_does_not(store: Store, queue: str) -> None:
    await store.of(Schemas).register(schema(queue, STRINGS), MOST)
    unfit, elsewhere = draft(type=queue, queue=queue), draft(queue=queue, schema="urn:elsewhere")
    [warned] = await store.of(Schemas).check(unfit)
    assert (warned.path, await store.of(Schemas).check(elsewhere)) == ("args[0]", ())
    await set_up([store], queue, schema_validation="strict")
    for job in (unfit, elsewhere):
        with refusal("schema_validation"):
            await store.of(Schemas).check(job)
    await set_up([store], queue, schema_validation="warn")
    assert [one.path for job in (unfit, elsewhere) for one in await store.of(Schemas).check(job)] == ["args[0]", "schema"]
    await set_up([store], queue, schema_validation="off")
    assert [await store.of(Schemas).check(job) for job in (unfit, elsewhere)] == [(), ()]


def compiled() -> list[Validator]:
    """All compiled schemas of this process."""
    return [found for found in gc.get_objects() if isinstance(found, Validator)]


async def test_a_schema_is_compiled_once(store: Store, queue: str) -> None:
    await store.of(Schemas).register(schema(queue, STRINGS), MOST)
    await store.of(Schemas).check(draft(type=queue))
    first = compiled()  # held, so that none can be taken for another
    assert first
    for _ in range(5):
        await store.of(Schemas).check(draft(type=queue))
    assert {id(one) for one in compiled()} == {id(one) for one in first}


async def test_nats_is_asked_nothing_about_a_job_without_a_schema(store: Store, queue: str) -> None:
    await store.of(Schemas).register(schema(queue, STRINGS), MOST)
    await store.of(Schemas).check(draft(type=queue))
    asked: list[str] = []

    def tap(_send: Send, subject: str, *_: object) -> None:
        asked.append(subject)

    with tapped(store.nats, tap), tapped(store.bulk, tap):
        assert await store.of(Schemas).check(draft(type="another.type", queue=queue)) == ()
    assert asked == []


async def test_a_reset_leaves_none(nats_server: NatsServer, open_store: OpenStore) -> None:
    store = await open_store(nats_server.url)
    await store.of(Schemas).register(schema("reset", STRINGS, mode="strict"), MOST)
    await store.reset(KINDS)
    assert (await store.of(Schemas).catalogue()).all() == []
    assert await store.of(Schemas).check(draft(type="reset")) == ()
    await store.of(Schemas).register(schema("reset", NUMBERS), MOST)
