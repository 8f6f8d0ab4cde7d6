from __future__ import annotations

import pytest

from integration.samples import KINDS
from ojs_engine.base.errors import OjsError
from ojs_engine.jetstream.api import put
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_engine.store.store import Store
from ojs_features.access.keys import Key, make_key
from ojs_features.access.known_keys import KnownKeys
from ojs_features.access.store import Keys
from ojs_features.all import STORE_FEATURES
from support.nats import NatsServer
from support.waiting import eventually


def following(store: Store) -> KnownKeys:
    return KnownKeys(store.clock.now)


async def admin(store: Store) -> Key:
    return await store.of(Keys).create(make_key("admin", "admin"))


async def test_every_gateway_hears_of_a_new_key_and_of_its_end(store: Store, other: Store) -> None:
    await admin(store)
    known = following(other)
    await other.of(Keys).follow(lambda keys, others: known.replace(keys, others=others))
    assert known.any
    new = make_key("shop", "producer")
    await store.of(Keys).create(new)
    header = f"Bearer {new.token}"

    async def let_in() -> bool:
        try:
            known.check_header(header)
        except OjsError:
            return False
        return True

    await eventually(let_in)
    admission = known.of_header(header)
    assert admission is not None
    await store.of(Keys).revoke(new.key.id)

    async def ended() -> bool:
        return admission.over

    await eventually(ended)
    with pytest.raises(OjsError, match="revoked"):
        known.check_header(header)
    assert other.of(Keys).fresh


async def test_a_reset_leaves_the_keys(store: Store) -> None:
    key = await admin(store)
    await store.reset(KINDS)
    assert key.id in {one.id for one in await store.of(Keys).all()}


async def test_the_first_key_has_to_be_able_to_make_others(nats_server: NatsServer) -> None:
    store = await Store.open(nats_server.url, StoreConfig(), role="keys", features=STORE_FEATURES)
    try:
        with pytest.raises(OjsError, match="admin") as error:
            await store.of(Keys).create(make_key("shop", "producer"))
        assert error.value.code == "conflict"
        await store.of(Keys).create(make_key("ops", "custom", permissions=["admin"]))
        await store.of(Keys).create(make_key("shop", "producer"))
        assert {key.name for key in await store.of(Keys).all()} == {"ops", "shop"}  # both may be of one millisecond
    finally:
        await store.close()


async def test_rotating_makes_a_new_key_and_ends_the_old_one_after_the_overlap(store: Store) -> None:
    await admin(store)
    old = await store.of(Keys).create(make_key("shop", "producer", queues=["shop.*"]))
    new = await store.of(Keys).rotate(old.id, 60_000)
    ended = await store.of(Keys).get(old.id)
    assert ended.expires_at is not None
    assert not ended.ended(ended.expires_at - 1)
    assert ended.ended(ended.expires_at)
    assert ended.replaced_by == new.key.id
    assert (await store.of(Keys).get(new.key.id)).queues == ("shop.*",)
    sooner = await store.of(Keys).rotate(old.id, 0)
    assert sooner.key.id != new.key.id
    with pytest.raises(OjsError, match="has ended, and can't be changed"):
        await store.of(Keys).rotate(old.id, 0)
    with pytest.raises(OjsError) as error:
        await store.of(Keys).rotate("nobody", 0)
    assert error.value.code == "not_found"


async def test_a_key_that_is_rotated_again_is_renewed_for_as_long_as_it_was_made_for(store: Store) -> None:
    """The end of the old one is that of its overlap, and says nothing of the new one's."""
    await admin(store)
    endless = await store.of(Keys).create(make_key("shop", "producer"))
    for _ in range(2):
        assert (await store.of(Keys).rotate(endless.id, 60_000)).key.expires_at is None
    hour = 3_600_000
    passing = await store.of(Keys).create(make_key("shop", "producer", expires_at=store.clock.now() + hour))
    lasts = (passing.expires_at or 0) - passing.created_at
    for _ in range(2):
        new = (await store.of(Keys).rotate(passing.id, 60_000)).key
        assert abs((new.expires_at or 0) - new.created_at - lasts) < 60_000


async def test_a_revoked_key_keeps_its_record_and_stays_as_it_ended(store: Store) -> None:
    key = await admin(store)
    first = await store.of(Keys).revoke(key.id)
    assert (await store.of(Keys).revoke(key.id)).revoked_at == first.revoked_at
    assert (await store.of(Keys).get(key.id)).revoked_at == first.revoked_at
    with pytest.raises(OjsError) as error:
        await store.of(Keys).revoke("nobody")
    assert error.value.code == "not_found"


async def test_a_use_is_noted_coarsely(store: Store) -> None:
    key = await admin(store)
    await store.of(Keys).note_use(key.id)
    noted = (await store.of(Keys).get(key.id)).used_at
    assert noted is not None
    await store.of(Keys).note_use(key.id)
    assert (await store.of(Keys).get(key.id)).used_at == noted
    await store.of(Keys).note_use("nobody")


async def test_a_record_that_can_t_be_read_lets_nobody_in_and_keeps_the_door_shut(store: Store) -> None:
    known = following(store)
    await put(store.nats, store.config.key("torn"), b'{"id": "torn"', None, "a torn record")
    await store.of(Keys).follow(lambda keys, others: known.replace(keys, others=others))

    async def shut() -> bool:
        return known.any

    await eventually(shut)
    assert "torn" not in {key.id for key in await store.of(Keys).all()}
