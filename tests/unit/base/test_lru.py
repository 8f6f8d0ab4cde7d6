from __future__ import annotations

from ojs_engine.base.lru import Lru


def test_the_least_recently_used_goes_first() -> None:
    cache: Lru[str] = Lru(40)
    for name in "abcd":
        cache.put(name, name, 10)
    assert cache.get("a") == "a"
    cache.put("e", "e", 10)
    assert [name for name in "abcde" if cache.get(name)] == ["a", "c", "d", "e"]


def test_what_would_take_a_quarter_of_everything_is_not_kept() -> None:
    cache: Lru[str] = Lru(40)
    cache.put("a", "small", 10)
    cache.put("a", "large", 11)
    assert cache.get("a") is None


def test_what_nobody_uses_goes_with_the_next_that_comes() -> None:
    now = 0.0
    cache: Lru[str] = Lru(1_000, idle_s=10.0, now=lambda: now)
    cache.put("used", "used", 1)
    cache.put("idle", "idle", 1)
    now = 8.0
    assert cache.get("used") == "used"
    now = 11.0
    cache.put("new", "new", 1)
    assert [name for name in ("used", "idle", "new") if cache.get(name)] == ["used", "new"]
    now = 60.0
    cache.put("newer", "newer", 1)
    assert [name for name in ("used", "new", "newer") if cache.get(name)] == ["newer"]
