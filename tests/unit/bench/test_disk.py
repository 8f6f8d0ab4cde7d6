from __future__ import annotations

from pathlib import Path

from bench.disk import grown, sizes


def test_each_part_of_a_folder_is_measured_with_all_that_is_below_it(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    before = sizes(tmp_path)
    (tmp_path / "a" / "b" / "one").write_bytes(b"x" * 100_000)
    (tmp_path / "file").write_bytes(b"x" * 10_000)
    more = grown(before, sizes(tmp_path))
    assert more.keys() == {"a", "file"}
    assert 100_000 <= more["a"] < 200_000
    assert 10_000 <= more["file"] < 50_000


def test_what_has_not_grown_is_left_out() -> None:
    assert grown({"a": 5, "b": 9}, {"a": 5, "b": 7, "c": 2}) == {"c": 2}


def test_an_unknown_folder_has_no_parts() -> None:
    assert sizes(None) == {}
