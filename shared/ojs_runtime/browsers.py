"""What a web page may ask of an HTTP server that has no log-in: nothing, unless its origin is allowed (docs/adr/031).

A browser on a machine that reaches the server sends requests for any page it shows. It marks them: with `Origin`, with
`Sec-Fetch-Site`, by the media types that a form can send, and, where a page makes its own name point here (DNS rebinding),
with that name in `Host`. Other clients send none of these marks and aren't concerned.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from multidict import istr

from ojs_engine.base.errors import OjsError, invalid
from ojs_engine.base.fields import shown
from ojs_engine.wire.media_types import JSON_TYPE, OJS_TYPE, accepts_media_type
from ojs_runtime.addresses import DEFAULT_PORTS, is_loopback

ANY_HOST: Final = "*"
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_PREFLIGHTED: Final = frozenset({"PUT", "PATCH", "DELETE"})
"""Methods that no form has, and that a script sends to another origin only after the browser has asked there."""
_OWN_SITE: Final = "same-origin"
_OWN_SITES: Final = frozenset({_OWN_SITE, "none"})
"""`Sec-Fetch-Site` of the server's own pages, and of what a person typed or opened from a bookmark."""
_FORM_TYPES: Final = frozenset({"", "application/x-www-form-urlencoded", "multipart/form-data", "text/plain"})
"""The media types that a form, or a script without asking first, can send (Fetch standard, CORS-safelisted)."""
_PROXY: Final = "have the proxy in front pass `Host` on, or send X-Forwarded-Host and be in --trusted-proxies (docs/proxies.md)"
_PREFLIGHT_S: Final = 600
METHODS: Final = "GET, HEAD, POST, PUT, PATCH, DELETE"
"""Those of all paths together."""
_EXPOSED: Final = (
    "Location, OJS-Version, Retry-After, X-OJS-Max-Batch-Size, X-OJS-Queue-Bound, X-OJS-Queue-Depth, X-RateLimit-Limit, "
    "X-RateLimit-Remaining, X-RateLimit-Reset, X-Request-Id"
)

HOST: Final = istr("Host")
_ORIGIN: Final = istr("Origin")
_SITE: Final = istr("Sec-Fetch-Site")
_MODE: Final = istr("Sec-Fetch-Mode")
_DESTINATION: Final = istr("Sec-Fetch-Dest")
_MARKS_OF_BROWSERS: Final = (_SITE, _MODE, _DESTINATION)
_CONTENT_TYPE: Final = istr("Content-Type")
_AUTHORIZATION: Final = istr("Authorization")
_USER_AGENT: Final = istr("User-Agent")
_OJS_VERSION: Final = istr("OJS-Version")
_CLOUDEVENTS: Final = "application/cloudevents"
_REQUESTED_METHOD: Final = istr("Access-Control-Request-Method")
_REQUESTED_HEADERS: Final = istr("Access-Control-Request-Headers")
DECIDING: Final = (HOST, _ORIGIN, _SITE, _MODE, _DESTINATION, _REQUESTED_METHOD, _REQUESTED_HEADERS)
"""Headers that decide whether a request is of a page from elsewhere."""


class Browsers:
    """The rules of one server, which listens on `host`.

    `hosts` are further names that it goes by, `*` for any. `origins` are those of the pages that may use it, as browsers write
    them: `https://jobs.example.com`. Without `hosts`, a server that listens on loopback goes by the names of loopback, and any
    other by every name.
    """

    def __init__(self, host: str, hosts: Iterable[str], origins: Iterable[str]) -> None:
        names = frozenset(hosts)
        self._names = names | _LOOPBACK | {host.lower()} if names or is_loopback(host) else None
        if ANY_HOST in names:
            self._names = None
        self._origins = frozenset(origins)

    def admit_name(self, host: str | None) -> None:
        """Refuse a `Host` that is no name of this server. Raises permission_denied."""
        if self._names is None or host is None or (name := host_name(host)) in self._names:
            return
        raise OjsError(
            "permission_denied",
            f"Host is {shown(name)}, which is no name of this server",
            hint=f"Use the address that it listens on, or start it with --allowed-hosts {name[:80]}.",
            details={"field": "Host"},
        )

    def admit(self, method: str, headers: Mapping[str, str], host: str | None) -> tuple[tuple[str, str], ...]:
        """Return headers for the answer, which let the page of an allowed origin read it; call `admit_name` first.

        `host` is the `Host` that the client has sent. Raises permission_denied.
        """
        origin, site = headers.get(_ORIGIN), headers.get(_SITE)
        if site == _OWN_SITE:
            pass  # the browser has compared, and no page can set this
        elif origin is not None:
            self._admit_origin(origin, host)
        elif site is not None and site not in _OWN_SITES and not _follows_a_link(method, headers):
            raise OjsError(
                "permission_denied",
                f"Sec-Fetch-Site is {shown(site)}: a page from elsewhere asks",
                hint="Let its server ask, or start this one with --allowed-origins and ask with CORS.",
                details={"field": "Sec-Fetch-Site"},
            )
        if not self._origins:
            return ()
        vary = ("Vary", "Origin")
        if origin is None or origin not in self._origins:
            return (vary,)
        return (vary, ("Access-Control-Allow-Origin", origin), ("Access-Control-Expose-Headers", _EXPOSED))

    def preflight(self, method: str, headers: Mapping[str, str]) -> tuple[tuple[str, str], ...] | None:
        """What a browser is told that asks for an allowed page; None if this is no such question. Call `admit` first."""
        if method != "OPTIONS" or _REQUESTED_METHOD not in headers or headers.get(_ORIGIN) not in self._origins:
            return None
        wanted = headers.get(_REQUESTED_HEADERS)
        more = () if wanted is None else (("Access-Control-Allow-Headers", wanted),)
        return (("Access-Control-Allow-Methods", METHODS), ("Access-Control-Max-Age", str(_PREFLIGHT_S)), *more)

    def _admit_origin(self, origin: str, host: str | None) -> None:
        if origin in self._origins or (host is not None and _same(origin, host)):
            return
        raise OjsError(
            "permission_denied",
            f"pages from {shown(origin)} may not use this server, which was asked for as {shown(host or '')}",
            hint=f"If they are its own, {_PROXY}. If they are others that may use it: --allowed-origins {origin[:80]}",
            details={"field": "Origin"},
        )


def require_own_page(method: str, headers: Mapping[str, str], host: str | None) -> None:
    """Refuse what a page of another origin asks with this server's cookie, though it may ask without; call `admit` first.

    What changes something has to say that it comes from here. Raises permission_denied.
    """
    origin, site = headers.get(_ORIGIN), headers.get(_SITE)
    if site == _OWN_SITE:
        return
    if origin is None:
        own = method in _SAFE and site in {None, "none"}
    else:
        own = host is not None and _same(origin, host) and (site is None or (site == "none" and method in _SAFE))
    if own:
        return
    raise OjsError(
        "permission_denied",
        "only this server's own pages may ask with its session cookie",
        hint=f"Ask with a key in Authorization, or from a page of the same origin. If this is one, {_PROXY}.",
        details={"field": "Origin" if origin is not None else "Sec-Fetch-Site"},
    )


def check_media_type(method: str, headers: Mapping[str, str], *, body: bool) -> None:
    """Refuse a body that isn't JSON, and a change that a form could have asked for; call `admit` first.

    Raises invalid_request, and `unsupported` for a CloudEvent. A request without a body needs no media type where
    something else proves that no form from elsewhere sent it.
    """
    content_type = headers.get(_CONTENT_TYPE)
    if content_type is not None:
        if _essence(content_type).startswith(_CLOUDEVENTS):
            said = "send the job that it asks for, as application/json, with the event's data among its args"
            message = f"a CloudEvent ({shown(content_type)}) is not read as a job: {said}"
            raise OjsError("unsupported", message, details={"field": "Content-Type"})
        if accepts_media_type(content_type):
            return
        if body:
            raise invalid("Content-Type", f"Content-Type is {shown(content_type)}; send {OJS_TYPE} or {JSON_TYPE}")
        if _essence(content_type) not in _FORM_TYPES:
            return
    if method in _SAFE or _is_no_form(method, headers) or (not body and _is_of_no_browser(headers)):
        return
    said = "missing" if content_type is None else shown(content_type)
    without = "" if body else ", OJS-Version: 1.0 or a key, also without a body"
    raise invalid("Content-Type", f"Content-Type is {said}; send {JSON_TYPE}{without}")


@lru_cache(maxsize=64)
def host_name(authority: str) -> str:
    """The name in a `Host`, without its port, in lower case; an IPv6 address without its brackets."""
    name = authority.strip().lower()
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.rpartition(":")[0] if name.count(":") == 1 else name


@lru_cache(maxsize=64)
def port_of(authority: str) -> str:
    """Return the port in a `Host`; empty if it has none, as that of a default port."""
    _, colon, port = authority.strip().rpartition(":")
    return port if colon and port.isascii() and port.isdigit() else ""


@lru_cache(maxsize=64)
def _same(origin: str, host: str) -> bool:
    """Whether an origin is the server that was asked. The scheme may differ: a proxy may speak TLS for it."""
    scheme, _, authority = origin.lower().partition("://")
    port = DEFAULT_PORTS.get(scheme, ":")
    return bool(authority) and authority.removesuffix(port) == host.strip().lower().removesuffix(port)


def _follows_a_link(method: str, headers: Mapping[str, str]) -> bool:
    """Whether a person comes here from another page: it isn't told what is answered."""
    return method in _SAFE and headers.get(_MODE) == "navigate" and headers.get(_DESTINATION) == "document"


def _is_no_form(method: str, headers: Mapping[str, str]) -> bool:
    """Return whether no page from elsewhere can have sent this without asking first (Fetch standard).

    A page sets neither `OJS-Version` nor a key nor a name that is no browser's. `Authorization: Basic` proves nothing,
    since browsers add it by themselves.
    """
    if method in _PREFLIGHTED or _ORIGIN in headers or _OJS_VERSION in headers:
        return True
    return _is_a_key(headers.get(_AUTHORIZATION)) or _is_no_browser(headers.get(_USER_AGENT))


def _is_of_no_browser(headers: Mapping[str, str]) -> bool:
    """Return whether it lacks what every browser sends: libraries of .NET, PHP or Rust name nothing."""
    return not headers.get(_USER_AGENT) and not any(mark in headers for mark in _MARKS_OF_BROWSERS)


def _is_a_key(authorization: str | None) -> bool:
    return authorization is not None and authorization[:7].lower() == "bearer "


@lru_cache(maxsize=64)
def _is_no_browser(agent: str | None) -> bool:
    """Return whether the name is none of a browser: all of them have begun with `Mozilla/` since 1995."""
    return agent is not None and agent != "" and not agent.lower().startswith("mozilla/")


def _essence(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()
