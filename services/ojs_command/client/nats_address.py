"""The way of commands to NATS itself."""

from __future__ import annotations

import os

from ojs_engine.jetstream.grants import OPERATOR
from ojs_link.address import files_of, read_address
from ojs_runtime.setting_readers import nats_urls


def operators_address(urls: str, role: str = OPERATOR) -> str:
    """Return the address as a role's user takes it, with the files that OJS_NATS_CREDS and the like name.

    Raises ValueError.
    """
    return read_address(nats_urls(urls)).with_files(files_of(os.environ)).of_role(role).url
