"""Which extensions of Open Job Spec the server supports, in one table (ojs-extension-lifecycle §5, §7, §8; docs/adr/017).

An extension stands here once every requirement that its document puts on a server, of those that are required for declaring it,
holds. The manifest and the answers to `OJS-Requires-Extension` are made from the table and from those of features.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

from ojs_engine.base.errors import OjsError
from ojs_engine.base.fields import shown

_RC1: Final = "1.0.0-rc.1"
_SHOWN: Final = 200


class Extension(NamedTuple):
    """One extension, and the version of the document that it follows.

    `capability` is a name of the manifest's capabilities that is true because of it.
    """

    name: str
    version: str = _RC1
    tier: Literal["official", "experimental"] = "official"
    capability: str | None = None

    @property
    def uri(self) -> str:
        return f"urn:ojs:ext:{'' if self.tier == 'official' else 'experimental:'}{self.name}"


EXTENSIONS: Final = (
    Extension("admin-api"),
    Extension("backpressure"),
    Extension("graceful-shutdown"),
    Extension("observability"),
    Extension("payload-limits"),
    Extension("results"),
    Extension("job-versioning", "0.1.0", "experimental"),
)
_CORE: Final = (
    "conformance",
    "core",
    "cron",
    "events",
    "extension-lifecycle",
    "http-binding",
    "json-format",
    "middleware",
    "retry",
    "unique-jobs",
    "worker-protocol",
    "workflows",
)
"""Documents of the core, which levels 0 to 4 over HTTP consist of."""


class SupportedExtensions:
    """The extensions that one server supports, with those of its features."""

    def __init__(self, of_features: Iterable[Extension]) -> None:
        self.all = sorted((*EXTENSIONS, *of_features), key=lambda one: (one.tier == "experimental", one.name))
        self._uris = [extension.uri for extension in self.all]
        self._met = frozenset((*self._uris, *(f"urn:ojs:spec:{name}" for name in _CORE)))

    def require(self, header: str) -> None:
        """Check what a request's `OJS-Requires-Extension` names: URIs, several separated by commas.

        Raises extension_not_supported, which names the first that isn't supported, and those that are.
        """
        for part in header.split(","):
            wanted = part.strip()
            if wanted and wanted not in self._met:
                raise OjsError(
                    "extension_not_supported",
                    f"Extension {shown(wanted)} is not supported by this implementation",
                    details={"extension": wanted[:_SHOWN], "supported_extensions": self._uris},
                )
