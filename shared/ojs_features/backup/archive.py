"""The files of a backup: compressed messages, and a manifest that says what has to be there.

A folder has its name only once all of it is on disk. So what has that name is whole, unless somebody has damaged it
since.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import secrets
import shutil
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final, Literal, get_args

import msgspec
from msgspec import Struct

from ojs_engine.base.numbers import At, Whole
from ojs_engine.store.backup import BackupProblem, Kept

FORMAT: Final = 1
"""Counts up when what older versions can't read is written."""
MANIFEST: Final = "manifest.json"
Part = Literal["records", "events", "audit"]
"""The content of a file."""

_LENGTH: Final = struct.Struct(">I")
_LEVEL: Final = 1


class PartManifest(Struct, frozen=True, kw_only=True):
    """A file as it has to be.

    Subjects behind the sequence `settled` may be in it several times: the last message counts.
    """

    file: str
    sha256: str
    bytes: Whole
    messages: Whole
    first: Whole
    last: Whole
    settled: Whole


class Manifest(Struct, frozen=True, kw_only=True):
    """A description of a backup. Times are Unix milliseconds.

    `relayed` is the sequence of the records up to which all events are in the backup, `delivered` says up to which sequence
    of the events each consumer of a feature has got them.
    """

    format: Whole
    version: str
    nats_server: str
    namespace: str
    began_at: At
    taken_at: At
    parts: dict[Part, PartManifest]
    relayed: Whole
    delivered: dict[str, Whole]


class _Digest:
    """A file that is hashed as it is written."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.sha256 = hashlib.sha256()
        self.bytes = 0

    def write(self, data: bytes) -> int:
        self.sha256.update(data)
        self.bytes += len(data)
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()


class PartWriter:
    """One file while it is written."""

    def __init__(self, folder: Path, part: Part) -> None:
        self._name = f"{part}.gz"
        self._file = _new_file(folder / self._name)
        self._digest = _Digest(self._file)
        self._packed = gzip.GzipFile("", "wb", _LEVEL, self._digest, mtime=0)
        self._encoder = msgspec.msgpack.Encoder()
        self.messages = 0
        self._first = self._last = 0

    def add(self, kept: Kept) -> None:
        """Append a message."""
        body = self._encoder.encode(kept)
        self._packed.write(_LENGTH.pack(len(body)) + body)
        self.messages += 1
        self._first = self._first or kept.sequence
        self._last = kept.sequence

    def finish(self, settled: int) -> PartManifest:
        """Have it on disk; returns what it has to be from now on."""
        self._packed.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return PartManifest(
            file=self._name,
            sha256=self._digest.sha256.hexdigest(),
            bytes=self._digest.bytes,
            messages=self.messages,
            first=self._first,
            last=self._last,
            settled=settled,
        )

    def close(self) -> None:
        """Let go of a file that won't be finished."""
        with suppress(OSError):  # what had found no room finds none now
            self._file.close()


class NewArchive:
    """A folder that is being written, under another name than it will have."""

    def __init__(self, folder: Path) -> None:
        self._target = folder
        self._folder = folder.parent / f".{folder.name}.partial-{secrets.token_hex(4)}"
        self._writers: list[PartWriter] = []

    def begin(self) -> None:
        """Make the folder, and those that it is in. Raises BackupProblem if one of its name is there."""
        if self._target.exists() or self._target.is_symlink():
            raise BackupProblem(f"{self._target} is there already, and no backup is written over: name another folder")
        self._folder.parent.mkdir(parents=True, exist_ok=True)
        self._folder.mkdir(mode=0o700)

    def part(self, part: Part) -> PartWriter:
        """Begin a file."""
        self._writers.append(writer := PartWriter(self._folder, part))
        return writer

    def finish(self, manifest: Manifest) -> int:
        """Give the folder its name; returns its size in bytes."""
        with _new_file(self._folder / MANIFEST) as file:
            file.write(msgspec.json.format(msgspec.json.encode(manifest), indent=2))
            file.flush()
            os.fsync(file.fileno())
            size = file.tell()
        _sync_folder(self._folder)
        self._folder.rename(self._target)
        _sync_folder(self._target.parent)
        return sum((part.bytes for part in manifest.parts.values()), size)

    def drop(self) -> None:
        """Remove what was written."""
        for writer in self._writers:
            writer.close()
        shutil.rmtree(self._folder, ignore_errors=True)


@contextmanager
def new_archive(folder: Path) -> Iterator[NewArchive]:
    """A folder to be written in the block, which vanishes if that fails. Raises BackupProblem where it can't be written."""
    archive = NewArchive(folder.absolute())
    try:
        archive.begin()
        yield archive
    except OSError as error:
        archive.drop()
        raise BackupProblem(f"{folder} can't be written ({error.strerror}): make room, or name another folder") from None
    except BaseException:
        archive.drop()
        raise


class Archive:
    """A finished folder."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self._folder = folder
        self.manifest = manifest

    @classmethod
    def open(cls, folder: Path) -> Archive:
        """Read its manifest. Raises BackupProblem."""
        file = folder / MANIFEST
        try:
            body = file.read_bytes()
        except FileNotFoundError:
            raise BackupProblem(f"{folder} is no backup: there is no {MANIFEST} in it; name the folder of a backup") from None
        except OSError as error:
            raise BackupProblem(f"{file} can't be read ({error.strerror}): mend that, or take another backup") from None
        try:
            found = msgspec.json.decode(body, type=_Version)
            if found.format > FORMAT:
                raise BackupProblem(
                    f"{folder} was made by ojs-nats {found.version}, in a format that this version can't read "
                    f"({found.format}; it reads up to {FORMAT}): restore it with that version, or a later one"
                )
            manifest = msgspec.json.decode(body, type=Manifest)
            if missing := set(get_args(Part)) - manifest.parts.keys():
                raise BackupProblem(f"{file} is damaged (it names no {missing.pop()}): take another backup")
            return cls(folder, manifest)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BackupProblem(f"{file} is damaged ({error}): take another backup") from None

    def verify(self) -> None:
        """Compare the files with the manifest. Raises BackupProblem."""
        for part in self.manifest.parts.values():
            file = self._file(part)
            try:
                with file.open("rb") as opened:
                    size = os.fstat(opened.fileno()).st_size
                    digest = hashlib.file_digest(opened, "sha256").hexdigest()
            except OSError as error:
                raise BackupProblem(f"{file} can't be read ({error.strerror}): mend that, or take another backup") from None
            if size < part.bytes:
                raise BackupProblem(f"{file} is cut off ({size:,} of {part.bytes:,} bytes): take another backup")
            if size > part.bytes or digest != part.sha256:
                raise BackupProblem(f"{file} isn't what was backed up (its SHA-256 is another): take another backup")

    def messages(self, part: Part) -> Iterator[Kept]:
        """Yield the messages of a file, in order. Raises BackupProblem."""
        decode = msgspec.msgpack.Decoder(Kept).decode
        wanted = self.manifest.parts[part]
        file, number = self._file(wanted), 0
        try:
            with gzip.open(file, "rb") as opened:
                while head := opened.read(_LENGTH.size):
                    yield decode(opened.read(_LENGTH.unpack(head)[0]))
                    number += 1
        except (OSError, EOFError, zlib.error, struct.error, msgspec.DecodeError) as error:
            raise BackupProblem(f"{file} can't be read to its end ({error}): take another backup") from None
        if number != wanted.messages:
            raise BackupProblem(f"{file} can't be read to its end ({number:,} of {wanted.messages:,}): take another backup")

    def _file(self, part: PartManifest) -> Path:
        return self._folder / Path(part.file).name


class _Version(Struct):
    """The member of a manifest that is read first."""

    format: int
    version: str = "of another version"


def _new_file(path: Path) -> IO[bytes]:
    """A file for its owner alone, which wasn't there."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
