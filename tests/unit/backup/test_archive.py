"""The files of a backup: whole or refused, in one sentence."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, get_args

import pytest

from ojs_engine.store.backup import BackupProblem, Kept
from ojs_features.backup.archive import (
    FORMAT,
    MANIFEST,
    Archive,
    Manifest,
    NewArchive,
    Part,
    new_archive,
)
from support.disks import CannotMount, small_disk

KEPT = [
    Kept(number, 1_000 + number, f"$KV.ojs.job.{number}", b"NATS/1.0\r\n\r\n", bytes([number]) * 50) for number in range(1, 6)
]


def write(folder: Path) -> None:
    with new_archive(folder) as archive:
        fill(archive)


def fill(archive: NewArchive) -> None:
    parts: dict[Any, Any] = {}
    for name in get_args(Part):
        writer = archive.part(name)
        for kept in KEPT:
            writer.add(kept)
        parts[name] = writer.finish(settled=4)
    archive.finish(
        Manifest(
            format=FORMAT,
            version="1",
            nats_server="2.15.1",
            namespace="ojs",
            began_at=1,
            taken_at=2,
            parts=parts,
            relayed=3,
            delivered={"a": 1},
        )
    )


def change(folder: Path, **members: object) -> None:
    file = folder / MANIFEST
    file.write_text(json.dumps(json.loads(file.read_text(encoding="utf-8")) | members), encoding="utf-8")


def test_what_was_written_is_read_and_for_its_owner_alone(tmp_path: Path) -> None:
    write(tmp_path / "kept")
    archive = Archive.open(tmp_path / "kept")
    archive.verify()
    assert list(archive.messages("records")) == KEPT
    assert (archive.manifest.relayed, archive.manifest.delivered, archive.manifest.parts["audit"].settled) == (3, {"a": 1}, 4)
    assert (archive.manifest.parts["records"].first, archive.manifest.parts["records"].last) == (1, 5)
    assert (tmp_path / "kept").stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in (tmp_path / "kept").iterdir()} == {0o600}
    assert list(tmp_path.iterdir()) == [tmp_path / "kept"]


def test_no_folder_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    with pytest.raises(BackupProblem, match="kept is there already, and no backup is written over: name another folder"):
        write(tmp_path / "kept")
    assert list((tmp_path / "kept").iterdir()) == []


def test_what_was_interrupted_leaves_nothing(tmp_path: Path) -> None:
    def interrupted() -> None:
        with new_archive(tmp_path / "kept") as archive:
            archive.part("records").add(KEPT[0])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_a_manifest_is_no_backup(tmp_path: Path) -> None:
    with pytest.raises(BackupProblem, match=r"is no backup: there is no manifest.json in it"):
        Archive.open(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1}', '{"format": 1, "version": "1", "parts": {}}', "\x00"])
def test_a_damaged_manifest_is_refused(tmp_path: Path, text: str) -> None:
    write(tmp_path / "kept")
    (tmp_path / "kept" / MANIFEST).write_text(text, encoding="utf-8")
    with pytest.raises(BackupProblem, match=r"manifest.json is damaged \(.*\): take another backup"):
        Archive.open(tmp_path / "kept")


def test_a_manifest_without_a_part_is_damaged(tmp_path: Path) -> None:
    write(tmp_path / "kept")
    parts = json.loads((tmp_path / "kept" / MANIFEST).read_text(encoding="utf-8"))["parts"]
    change(tmp_path / "kept", parts={"records": parts["records"], "events": parts["events"]})
    with pytest.raises(BackupProblem, match="it names no audit"):
        Archive.open(tmp_path / "kept")


def test_a_backup_of_a_later_format_is_refused_with_the_version_that_reads_it(tmp_path: Path) -> None:
    write(tmp_path / "kept")
    change(tmp_path / "kept", format=FORMAT + 1, version="9.0.0", parts="as nobody knows")
    with pytest.raises(BackupProblem, match=r"was made by ojs-nats 9\.0\.0, in a format that this version can't read"):
        Archive.open(tmp_path / "kept")


def test_a_file_that_is_cut_off_or_changed_is_named(tmp_path: Path) -> None:
    write(tmp_path / "kept")
    archive = Archive.open(tmp_path / "kept")
    file = tmp_path / "kept" / "records.gz"
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    with pytest.raises(BackupProblem, match=r"records.gz is cut off \(\d+ of \d+ bytes\): take another backup"):
        archive.verify()
    file.write_bytes(whole[:20] + bytes([whole[20] ^ 1]) + whole[21:])
    with pytest.raises(BackupProblem, match=r"records.gz isn't what was backed up"):
        archive.verify()
    file.unlink()
    with pytest.raises(BackupProblem, match=r"records.gz can't be read \(No such file or directory\)"):
        archive.verify()


@pytest.mark.parametrize("size", [0, 1, 30, -1])
def test_reading_a_file_to_a_wrong_end_is_refused(tmp_path: Path, size: int) -> None:
    """Whatever happens to a file after it was verified."""
    write(tmp_path / "kept")
    archive = Archive.open(tmp_path / "kept")
    file = tmp_path / "kept" / "records.gz"
    file.write_bytes(file.read_bytes()[:size])
    with pytest.raises(BackupProblem, match="can't be read to its end"):
        list(archive.messages("records"))


@pytest.mark.parametrize("size", [100, 2_000, 70_000], ids=["seen at the end", "seen on the way", "in one piece"])
def test_a_full_disk_is_told_of_and_leaves_nothing(tmp_path: Path, size: int) -> None:
    def filling() -> None:
        with new_archive(tmp_path / "disk" / "kept") as archive:
            writer = archive.part("records")
            for number in range(1, 2_000_000 // size):
                writer.add(Kept(number, 1, "$KV.ojs.job.a", b"", os.urandom(size)))
            writer.finish(1)

    try:
        with small_disk(tmp_path / "disk", 1):
            with pytest.raises(BackupProblem, match=r"can't be written \(No space left on device\): make room"):
                filling()
            assert list((tmp_path / "disk").iterdir()) == []
    except CannotMount as error:
        pytest.skip(f"no disk can be mounted here: {error}")


def test_the_folders_that_it_is_in_are_made(tmp_path: Path) -> None:
    folder = tmp_path / "var" / "backups" / "monday"
    write(folder)
    assert list(folder.parent.iterdir()) == [folder]


@pytest.mark.parametrize(("name", "said"), [("file/monday", "can't be written"), ("", "is there already")])
def test_a_folder_that_cannot_be_made_is_named_as_it_was_given(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BackupProblem, match=f"^{re.escape(str(tmp_path / name))} {said}"):
        write(tmp_path / name)
