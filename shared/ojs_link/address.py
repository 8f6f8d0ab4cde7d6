"""The address of NATS: servers, and behind them the inbox, the namespace and the files of the credentials."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl, quote, urlsplit

from msgspec import Struct
from msgspec.structs import replace

INBOX: Final = "_INBOX"
"""How inboxes begin unless an address says otherwise."""
ROLE: Final = "{role}"
"""Stands for the role of a process in the names of files and in the inbox prefix."""
FILES: Final = ("creds", "ca", "cert", "key")
"""The options of an address that name files."""
_BY_ROLE: Final = ("inbox_prefix", *FILES)
_OPTIONS: Final = ("namespace", *_BY_ROLE)
_VARIABLE: Final = "OJS_NATS_{}"
_SCHEMES: Final = ("nats", "tls", "ws", "wss")
_INBOX_PREFIX: Final = re.compile(r"_INBOX[A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*")
_USER_INFO: Final = re.compile(r"(?<=://)[^\s/?#]*(?=@)")
_EXAMPLE: Final = "is not a URL like nats://127.0.0.1:4222"


class Address(Struct, frozen=True, kw_only=True):
    """Where NATS is, and who one is there.

    `creds` names a file with credentials (`ojs_link.login`), `ca` one with the certificates to trust, `cert` and `key` those
    of this client. `namespace` is that of the system which a client asks; services have a setting instead. An empty text
    stands for none.
    """

    servers: tuple[str, ...]
    inbox_prefix: str = INBOX
    namespace: str = ""
    creds: str = ""
    ca: str = ""
    cert: str = ""
    key: str = ""

    @property
    def wants_tls(self) -> bool:
        """Whether nothing may be sent before the connection is encrypted."""
        return bool(self.ca or self.cert) or any(server.startswith("tls://") for server in self.servers)

    def with_files(self, files: Mapping[str, str]) -> Address:
        """Return the address with further files, by the names of `FILES`; those that it names itself stay. Raises ValueError.

        A login that stands in a URL counts as credentials.
        """
        own = self.creds or self.cert or any("@" in server for server in self.servers)
        wanted = {name: path for name, path in files.items() if path and not getattr(self, name)}
        if own:
            wanted = {name: path for name, path in wanted.items() if name == "ca"}
        return _checked(replace(self, **wanted))

    def of_role(self, role: str) -> Address:
        """Return the address that a process of a role uses."""
        named = {name: getattr(self, name).replace(ROLE, role) for name in _BY_ROLE}
        return replace(self, **named)

    @property
    def url(self) -> str:
        """The text that `read_address` turns into this address again."""
        options = {name: getattr(self, name) for name in _OPTIONS}
        if options["inbox_prefix"] == INBOX:
            del options["inbox_prefix"]
        said = "&".join(f"{name}={quote(value, safe='/{}')}" for name, value in options.items() if value)
        return ",".join(self.servers) + (f"?{said}" if said else "")


def files_of(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what `Address.with_files` takes, of the variables OJS_NATS_CREDS and so on."""
    return {name: environ.get(_VARIABLE.format(name.upper()), "") for name in FILES}


def read_address(url: str) -> Address:
    """Read a NATS URL, or a comma list of the servers of one cluster, with options behind the last; `nats://` may be left out.

    Raises ValueError, whose text shows no login.
    """
    listed, question, said = url.partition("?")
    words = [word.strip() for word in listed.split(",") if word.strip()]
    servers = tuple(word if "://" in word else f"nats://{word}" for word in words)
    for server in servers:
        try:
            parts = urlsplit(server)
            usable = parts.scheme in _SCHEMES and parts.hostname and (parts.port is None or parts.port > 0)
        except ValueError:
            usable = False
        if not usable:
            raise ValueError(f"{masked(server)!r} {_EXAMPLE}")
    if not servers:
        raise ValueError(f"{masked(url)!r} {_EXAMPLE}")
    options = dict(parse_qsl(said, keep_blank_values=True))
    for name, value in options.items():
        if name not in _OPTIONS or not value:
            raise ValueError(f"{masked(url)!r} may end in ?, and options joined by &: {', '.join(_OPTIONS)}; each has a value")
    if question and not options:
        raise ValueError(f"{masked(url)!r} may end in ?inbox_prefix=_INBOX…, and in nothing without a value")
    prefix = options.get("inbox_prefix", INBOX)
    if not _INBOX_PREFIX.fullmatch(prefix.replace(ROLE, "role")):
        raise ValueError(f"{masked(url)!r} may end in ?inbox_prefix=_INBOX…, of letters, digits, -, _ and dots between them")
    return _checked(Address(servers=servers, **options))


def _checked(address: Address) -> Address:
    if bool(address.cert) != bool(address.key):
        raise ValueError("a client certificate has two files: name its certificate (cert) and its key (key), both or neither")
    if address.creds and any("@" in server for server in address.servers):
        raise ValueError(f"{masked(address.url)!r} has two logins: one in the URL, one in the file creds; leave one out")
    return address


def masked(text: str) -> str:
    """Return a text without the users, passwords and tokens of the URLs in it."""
    return _USER_INFO.sub("***", text) if "@" in text else text
