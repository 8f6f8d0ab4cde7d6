from __future__ import annotations

from pathlib import Path
from typing import cast

from ojs_engine.domain.storage_room import RoomSettings, StorageLevel, levels, shortage
from ojs_engine.jetstream.connection import Connection
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_engine.store.capacity.disk import of_disk
from ojs_engine.store.capacity.storage_room import RoomTimings, StorageRoom
from ojs_engine.store.workers.presence import Presence

MIB = 1024 * 1024
RESERVE = 256 * MIB


def info(storage: int, max_storage: int = -1, **tiers: object) -> dict[str, object]:
    return {"storage": storage, "limits": {"max_storage": max_storage}, "tiers": tiers}


def test_without_a_known_limit_there_is_nothing_to_be_full() -> None:
    assert levels(info(10 * MIB), 1, None, RESERVE) == []
    assert shortage([]) is None


def test_the_reserve_is_at_most_an_eighth_of_a_small_limit() -> None:
    (small,) = levels(info(0), 1, 64 * MIB, RESERVE)
    (large,) = levels(info(0), 1, 20 * 1024 * MIB, RESERVE)
    assert (small.reserve, large.reserve) == (8 * MIB, RESERVE)


def test_it_is_full_when_less_than_the_reserve_is_left() -> None:
    (enough,) = levels(info(56 * MIB), 1, 64 * MIB, RESERVE)
    (full,) = levels(info(56 * MIB + 1), 1, 64 * MIB, RESERVE)
    assert (enough.full, full.full) == (False, True)


def test_each_server_of_a_cluster_has_one_of_the_copies_that_the_account_is_charged_for() -> None:
    account, server = levels(info(90 * MIB, 300 * MIB), 3, 64 * MIB, RESERVE)
    assert (account.used, account.limit) == (90 * MIB, 300 * MIB)
    assert (server.used, server.limit) == (30 * MIB, 64 * MIB)


def test_a_limit_by_tier_is_for_each_copy() -> None:
    tier = {"storage": 90 * MIB, "limits": {"max_storage": 100 * MIB}}
    (account,) = levels(info(0, R3=tier), 3, None, RESERVE)
    assert (account.used, account.limit) == (90 * MIB, 300 * MIB)


def test_of_several_levels_the_one_that_lacks_most_is_named_with_figures() -> None:
    room = StorageLevel("account", "the account", 10 * MIB, 100 * MIB, 10 * MIB)
    less = StorageLevel("server", "the server", 95 * MIB, 100 * MIB, 10 * MIB)
    none = StorageLevel("disk", "the disk", 100 * MIB, 100 * MIB, 10 * MIB)
    assert shortage([room]) is None
    said = shortage([room, less, none])
    assert said is not None
    assert said.startswith("the disk is full: 100.0 MiB of 100.0 MiB are used, and the last 10.0 MiB are kept")


def test_a_disk_says_what_is_left_of_it(tmp_path: Path) -> None:
    disk = of_disk(tmp_path, 1)
    assert disk is not None
    assert 0 < disk.used < disk.limit
    assert of_disk(tmp_path / "not there", 1) is None


def test_looks_come_sooner_the_less_is_left_and_a_second_apart_where_nothing_is_known_or_full() -> None:
    nats, times = Connection("test"), RoomTimings()
    room = StorageRoom((nats,), cast("Presence", None), StoreConfig(), RoomSettings(), times)
    assert room._pause() == times.longest_s, "no limit is known"
    room.levels = [StorageLevel("server", "the server", 0, 1 << 40, RESERVE)]
    assert room._pause() == times.longest_s
    room.levels = [StorageLevel("server", "the server", 0, RESERVE + 256 * MIB, RESERVE)]
    assert room._pause() == 0.5
    room.levels = [StorageLevel("server", "the server", 0, RESERVE, RESERVE)]
    assert room._pause() == times.shortest_s
    room.shortage = "it is full"
    assert room._pause() == times.longest_s
