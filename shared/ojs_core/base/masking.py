"""Keeps the secrets of a NATS URL out of logs, messages and printed settings."""

from __future__ import annotations

import re
from typing import Final

_USER_INFO: Final = re.compile(r"(?<=://)[^\s/?#]*(?=@)")


def mask(text: str) -> str:
    """`text` with the user, password or token of every URL in it replaced: `nats://a:b@host` -> `nats://***@host`."""
    return _USER_INFO.sub("***", text) if "@" in text else text
