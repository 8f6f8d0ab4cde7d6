"""The messages of the stream of records that go into a backup: those that can't be made again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ojs_engine.jetstream.subjects import Kind, StoreConfig
from ojs_engine.store.backup import FeatureBackup

_MOMENTARY: Final[frozenset[Kind]] = frozenset({"service", "relay", "barrier", "probe", "ring", "reset", "backup"})
"""Records that say what is now: processes write them anew. The time of the last backup is of this system alone."""


class Selection:
    """Tells by subjects. Hints are made again of the records that they are of, but those that features keep."""

    def __init__(self, config: StoreConfig, features: Iterable[FeatureBackup]) -> None:
        self._config = config
        self._kept = frozenset[tuple[str, str]]().union(*(feature.hints for feature in features))
        self._records = len(config.records) - 1
        self._hints = len(config.namespace) + 1

    def keeps(self, subject: str) -> bool:
        """Return whether a message of the subject is backed up."""
        if not subject.startswith("$KV."):
            kind, what, _ = subject[self._hints :].split(".", 2)
            return (kind, what) in self._kept
        kind, _, name = self.key(subject)
        return kind not in _MOMENTARY and (kind != "worker" or "." in name)

    def key(self, subject: str) -> tuple[str, str, str]:
        """Return the kind and the name of a record's subject, around a dot; the kind is empty for a hint's."""
        return subject[self._records :].partition(".") if subject.startswith("$KV.") else ("", "", subject)
