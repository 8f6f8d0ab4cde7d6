"""Versions of job types and of their schemas, and their order (ojs-schema-registry §6, ojs-job-versioning §5): SemVer, of which
minor and patch may be left out.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from msgspec import Struct

from ojs_engine.base.errors import OjsError, invalid
from ojs_engine.base.fields import shown

_VERSION: Final = re.compile(
    r"(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?(?:-([0-9A-Za-z-]{1,40}(?:\.[0-9A-Za-z-]{1,40}){0,4}))?", re.ASCII
)

_Part = tuple[int, int, str]


class Version(Struct, frozen=True, order=True):
    """Sorts by SemVer's precedence (§11 there): a pre-release comes before its release."""

    major: int
    minor: int
    patch: int
    released: bool
    pre_release: tuple[_Part, ...]
    """Of each identifier whether it is a word, its number, the word."""

    @property
    def token(self) -> str:
        """The version in full: one text for all ways to write it."""
        words = ".".join(word if is_word else str(number) for is_word, number, word in self.pre_release)
        return f"{self.major}.{self.minor}.{self.patch}" + (f"-{words}" if words else "")


def parse_version(text: str, field: str = "version", called: str | None = None) -> Version:
    """`2`, `2.0`, `2.0.0` (one and the same), `2.0.0-rc.1`. `called` is what a message calls it, if not as the `field`.

    Raises OjsError invalid_request.
    """
    found = _VERSION.fullmatch(text)
    if found is None:
        raise invalid(field, f"{called or field} must be a version such as 2, 2.0 or 2.0.0-rc.1 (SemVer), not {shown(text)}")
    major, minor, patch, pre_release = found.groups()
    parts = tuple([_part(word) for word in (pre_release or "").split(".") if word])
    return Version(int(major), int(minor or 0), int(patch or 0), pre_release is None, parts)


@lru_cache(maxsize=1_024)
def version_of(sent: int | str | None) -> Version | None:
    """A version as a job carries it; None if it has none, or, in a record that somebody wrote by hand, one that is none."""
    try:
        return None if sent is None else parse_version(str(sent))
    except OjsError:
        return None


def _part(word: str) -> _Part:
    return (0, int(word), "") if word.isdecimal() else (1, 0, word)
