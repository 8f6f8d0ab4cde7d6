"""How the value of one setting is read from text or TOML, and written back as text.

A reader takes what the user wrote (a string from a flag or the environment, any TOML value from a file) and returns the
setting's value, or raises `ValueError` with the words that follow the setting's name: "'x' is not a whole number from …".
"""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal, get_args
from urllib.parse import urlsplit

from ojs_engine.jetstream.subjects import checked_namespace
from ojs_link.address import masked, read_address
from ojs_runtime.addresses import DEFAULT_PORTS

Reader = Callable[[object], Any]
NatsApiMode = Literal["auto", "open", "keys", "off"]

_TRUE: Final = ("true", "yes", "on", "1")
_FALSE: Final = ("false", "no", "off", "0")
_TYPE_PATTERN: Final = re.compile(r"\*|[a-z][a-zA-Z0-9_.-]{0,254}\*?")
_ORIGIN: Final = re.compile(r"([a-z][a-z0-9+.-]*)://([a-z0-9.-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")
_HOST_NAME: Final = re.compile(r"[a-z0-9_.-]+|[0-9a-f.]*:[0-9a-f]*:[0-9a-f:.]*|\*")
_PATH_PREFIX: Final = re.compile(r"(/[A-Za-z0-9._~-]{1,64}){1,8}", re.ASCII)
_OWN_PATHS: Final = frozenset({"ojs", "v1", "ui"})
_HTTP_SCHEMES: Final = ("http", "https")
_MOST_KEY: Final = 200


def text(value: object) -> str:
    """Text that isn't empty."""
    if isinstance(value, str) and value.strip():
        return value.strip()
    raise ValueError(f"{_quoted(value)} is not a text of at least one character")


def namespace(value: object) -> str:
    """A name that everything in NATS may begin with."""
    return checked_namespace(text(value))


def path(value: object) -> Path:
    """A path; `~` is the home folder."""
    return Path(text(value)).expanduser()


def optional_path(value: object) -> Path | None:
    """A path, or None for `off`."""
    return None if value is False or (isinstance(value, str) and value.strip().lower() == "off") else path(value)


def boolean(value: object) -> bool:
    """`true` or `false`, also yes/no, on/off and 1/0."""
    word = str(value).strip().lower()
    if isinstance(value, bool | str) and word in _TRUE + _FALSE:
        return word in _TRUE
    raise ValueError(f"{_quoted(value)} is neither true nor false")


def nats_api(value: object) -> str:
    """One of auto, open, keys and off; true means auto, and false off."""
    try:
        return "auto" if boolean(value) else "off"
    except ValueError:
        return str(choice(*get_args(NatsApiMode))(value))


def api_key(value: object) -> str | None:
    """A key, or None for `off`; what is wrong with one is told without it."""
    if value is False or (isinstance(value, str) and value.strip().lower() in {"", "off"}):
        return None
    found = value.strip() if isinstance(value, str) else ""
    if not found.isascii() or not found.isprintable() or " " in found or not 0 < len(found) <= _MOST_KEY:
        raise ValueError(f"a key has 1 to {_MOST_KEY} characters of ASCII without blanks")
    return found


def choice(*allowed: str) -> Reader:
    """One of a few words, in any case."""

    def read(value: object) -> str:
        word = value.strip().lower() if isinstance(value, str) else ""
        if word in allowed:
            return word
        raise ValueError(f"{_quoted(value)} is none of {', '.join(allowed)}")

    return read


def integer(lowest: int, highest: int) -> Reader:
    """A whole number within limits, both included; text may group digits with `_`."""

    def read(value: object) -> int:
        try:
            number = int(_ascii(value)) if isinstance(value, str) else value
        except ValueError:
            number = None
        if isinstance(number, int) and not isinstance(number, bool) and lowest <= number <= highest:
            return number
        raise ValueError(f"{_quoted(value)} is not a whole number from {lowest} to {highest}")

    return read


def seconds(lowest: float, highest: float) -> Reader:
    """A number of seconds within limits, both included."""

    def read(value: object) -> float:
        try:
            sent = _ascii(value) if isinstance(value, str) else value
            number = float(sent) if isinstance(sent, str | int | float) and not isinstance(sent, bool) else math.nan
        except ValueError:
            number = math.nan
        if lowest <= number <= highest:
            return number
        raise ValueError(f"{_quoted(value)} is not a number of seconds from {lowest:g} to {highest:g}")

    return read


def health_port(value: object) -> int | None:
    """A TCP port (0: any free one), or None for `off`."""
    if value is False or (isinstance(value, str) and value.strip().lower() == "off"):
        return None
    try:
        return int(integer(0, 65535)(value))
    except ValueError as error:
        raise ValueError(f"{error}, or off") from None


def endpoint(value: object) -> str | None:
    """An http or https URL, or None for `off`."""
    return _http_url(value, "like http://127.0.0.1:4318")


def _http_url(value: object, form: str) -> str | None:
    if value is False or (isinstance(value, str) and value.strip().lower() == "off"):
        return None
    url = value.strip() if isinstance(value, str) else ""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in _HTTP_SCHEMES and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable:
        raise ValueError(f"{_quoted(value)} is not a URL {form}, or off")
    return url


def job_types(value: object) -> tuple[str, ...]:
    """Job types, or prefixes that end in `*`, as a comma list or a TOML list."""
    types = _words(value)
    for item in types:
        if not _TYPE_PATTERN.fullmatch(item):
            raise ValueError(f"{_quoted(item)} is not a job type like email.send, and no prefix like email.* either")
    return types


def host_names(value: object) -> tuple[str, ...]:
    """Names or addresses without a port, or `*`, as a comma list or a TOML list; in lower case."""
    names = tuple(name.lower().removeprefix("[").removesuffix("]") for name in _words(value))
    for name in names:
        if not _HOST_NAME.fullmatch(name):
            raise ValueError(f"{_quoted(name)} is not a host name or an address, without a port, and not * either")
    return names


def networks(value: object) -> tuple[str, ...]:
    """Addresses and networks (`10.0.0.0/8`), as a comma list or a TOML list; there is none for everybody."""
    found = _words(value)
    for item in found:
        try:
            everybody = ipaddress.ip_network(item, strict=False).prefixlen == 0
        except ValueError:
            raise ValueError(f"{_quoted(item)} is not an address or a network like 10.0.0.0/8") from None
        if everybody:
            raise ValueError(f"{_quoted(item)} would trust everybody: name the addresses or networks of the proxies")
    return found


def path_prefix(value: object) -> str:
    """A path that others begin with (`/jobs`), without a slash at its end; empty for `off`."""
    if value is False or (isinstance(value, str) and value.strip().lower() in {"", "/", "off"}):
        return ""
    found = value.strip().removesuffix("/") if isinstance(value, str) else ""
    segments = found.split("/")[1:]
    if not _PATH_PREFIX.fullmatch(found) or {".", ".."} & set(segments):
        raise ValueError(f"{_quoted(value)} is not a path like /jobs: letters, digits and ._~- between slashes, or off")
    if segments[0] in _OWN_PATHS:
        raise ValueError(f"{_quoted(value)} begins with /{segments[0]}, which is a path of the server itself")
    return found


def origins(value: object) -> tuple[str, ...]:
    """Origins as browsers write them (`https://jobs.example.com`), as a comma list or a TOML list; there is none for all."""
    return tuple(_origin(text) for text in _words(value))


def _origin(text: str) -> str:
    found = _ORIGIN.fullmatch(text.lower().removesuffix("/"))
    if found is None:
        raise ValueError(f"{_quoted(text)} is not an origin like https://jobs.example.com (a scheme, a name, maybe a port)")
    scheme, name, port = found[1], found[2], found[3] or ""
    return f"{scheme}://{name}{'' if port == DEFAULT_PORTS.get(scheme) else port}"


def nats_urls(value: object) -> str:
    """Return one NATS URL or a comma list of the servers of one cluster, with options behind it (`ojs_link.address`)."""
    address = read_address(",".join(_words(value)))
    if address.namespace:
        raise ValueError(f"{_quoted(masked(address.url))} can't name one: the namespace is a setting of its own")
    return address.url


def other_nats_urls(value: object) -> str | None:
    """Return what `nats_urls` does, or None for `off`."""
    return None if value is False or (isinstance(value, str) and value.strip().lower() == "off") else nats_urls(value)


def written(value: object) -> str:
    """The text that a reader turns into `value` again."""
    if value is None:
        return "off"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _words(value: object) -> tuple[str, ...]:
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise ValueError(f"{_quoted(value)} is not a comma list")
    return tuple(item.strip() for item in items if item.strip())


def _quoted(value: object) -> str:
    shown = repr(value)
    return masked(shown if len(shown) <= 80 else f"{shown[:77]}…")


def _ascii(text: str) -> str:
    """Raise ValueError for digits other than 0 to 9, which `int` and `float` take."""
    if not text.isascii():
        raise ValueError(text)
    return text
