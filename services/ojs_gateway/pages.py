"""The dashboard over HTTP: its document on the paths of its pages, its files under their hash (docs/dashboard.md)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from aiohttp import hdrs

from ojs_dashboard import files
from ojs_engine.api.call import Call, Response
from ojs_engine.base.errors import not_found
from ojs_gateway.http.compression import accepts_gzip
from ojs_gateway.http.endpoint import Endpoint
from ojs_gateway.http.router import no_path

_PARAMETER: Final = re.compile(r"\{\w+\}")
_FOR_EVER: Final = ((hdrs.CACHE_CONTROL, "public, max-age=31536000, immutable"),)
_EACH_TIME: Final = (
    (hdrs.CACHE_CONTROL, "no-cache"),
    ("Content-Security-Policy", files.POLICY),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("X-Frame-Options", "DENY"),
)
REMEDY: Final = (
    "its two JavaScript libraries weren't in the package. In a checkout, script/dashboard_files brings them "
    "where npm's registry can be reached; install from the checkout again if you run what pip has installed, "
    "and start the gateway again (deploy/README.md)"
)
"""The reason why there is no dashboard, and what to do."""
_MISSING: Final = files.File(
    "text/html; charset=utf-8",
    f"<!doctype html><title>ojs-nats</title><p>There is no dashboard: {REMEDY}. The API works without it.\n".encode(),
    b"",
)


class Pages:
    """What browsers get of the dashboard."""

    def __init__(
        self,
        *,
        prefix: str = "",
        libraries: Path = files.LIBRARIES,
    ) -> None:
        self._dashboard = files.load(prefix=prefix, libraries=libraries)

    @property
    def there(self) -> bool:
        """Whether there is a dashboard. Without its libraries there is a page that says so."""
        return self._dashboard is not None

    def endpoints(self) -> Iterator[tuple[str, Endpoint]]:
        """Paths, all of GET, with who answers them.

        They are open to everybody: there is nothing of the system in them.
        """
        for path in files.PAGES:
            yield path, Endpoint("getPage", (), "nothing", partial(self.document, path), public=True)
        asset = Endpoint("getAsset", ("hash", "file"), "nothing", self.file, public=True)
        yield f"{files.ASSETS}/{{hash}}/{{file}}", asset

    async def document(self, path: str, call: Call) -> Response:
        """Return the page to those who ask for HTML; others get the API's answer to a path that isn't there."""
        if "text/html" not in (call.remark(hdrs.ACCEPT) or ""):
            values = iter(call.parameters)
            raise no_path(_PARAMETER.sub(lambda _: next(values), path))
        document = _MISSING if self._dashboard is None else self._dashboard.document
        return _sent(call, document, _EACH_TIME)

    async def file(self, call: Call) -> Response:
        """A module of the dashboard, its style or its icon."""
        name = "/".join(call.parameters)
        file = None if self._dashboard is None else self._dashboard.files.get(name)
        if file is None:
            raise not_found("file", name)
        return _sent(call, file, _FOR_EVER)


def _sent(call: Call, file: files.File, headers: tuple[tuple[str, str], ...]) -> Response:
    headers = (*headers, (hdrs.CONTENT_TYPE, file.media_type), (hdrs.VARY, hdrs.ACCEPT_ENCODING))
    accepted = call.remark(hdrs.ACCEPT_ENCODING)
    if not file.packed or accepted is None or not accepts_gzip(accepted):
        return Response(200, file.body, headers)
    return Response(200, file.packed, (*headers, (hdrs.CONTENT_ENCODING, "gzip")))
