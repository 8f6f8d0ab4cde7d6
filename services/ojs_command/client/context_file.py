"""Contexts: servers by name, with the headers and the files of TLS that they ask for, in a file of the user's own."""

from __future__ import annotations

import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
import tomli_w

from ojs_command.client.problems import UsageProblem
from ojs_link.address import masked
from ojs_nats._connect import DEFAULT_URL, authorized, url_of
from ojs_nats._tls import HTTPS, Trust, of_environment, or_else
from ojs_nats.tls import Tls

_OWNER_ONLY: Final = 0o700


class Context(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A server, headers for every request to it, and files for TLS with it."""

    server: str
    headers: dict[str, str] = {}
    tls: Tls = Tls()

    def masked(self) -> Context:
        """As it may be shown."""
        return Context(masked(self.server), dict.fromkeys(self.headers, "***"), self.tls)


class Contexts(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """All of them; `current` is the name of the one that counts."""

    current: str = ""
    contexts: dict[str, Context] = {}

    def named(self, name: str) -> Context:
        """Raises UsageProblem."""
        if name not in self.contexts:
            known = ", ".join(sorted(self.contexts)) or "none yet"
            raise UsageProblem(
                f"There is no context {name!r} (there are: {known}): make it with 'ojs-nats context set {name} --server URL'."
            )
        return self.contexts[name]


class Target(msgspec.Struct, frozen=True):
    """The server that a command asks. `source` says what named it."""

    url: str
    headers: dict[str, str]
    source: str
    files: Tls = Tls()
    """Those that were named, or are of the context or the environment."""

    @property
    def tls(self) -> Tls | None:
        """What a client connects with."""
        return self.files if self.url.startswith(HTTPS) else None

    @property
    def shown(self) -> str:
        """Without a password."""
        return masked(self.url)

    def showing(self, token: str) -> Target:
        """The same with another key."""
        return Target(self.url, dict(authorized(self.headers, token)), self.source)


def _path(env: Mapping[str, str]) -> Path:
    folder = env.get("XDG_CONFIG_HOME") or str(Path(env.get("HOME", "~")).expanduser() / ".config")
    return Path(folder) / "ojs-nats" / "contexts.toml"


def read_contexts(env: Mapping[str, str]) -> Contexts:
    """None at all if there is no file. Raises UsageProblem."""
    path = _path(env)
    try:
        return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), Contexts)
    except FileNotFoundError:
        return Contexts()
    except (OSError, ValueError) as error:  # msgspec's and tomllib's errors are ValueErrors
        raise UsageProblem(f"{path} can't be read ({error}): mend it, or remove it and make your contexts anew.") from None


def write_contexts(contexts: Contexts, env: Mapping[str, str]) -> None:
    """Put them in the file's place; only its owner may read it. Raises UsageProblem."""
    path = _path(env)
    try:
        path.parent.mkdir(mode=_OWNER_ONLY, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False) as written:  # its mode is 0600
            written.write(tomli_w.dumps(msgspec.to_builtins(contexts)))
        Path(written.name).replace(path)
    except OSError as error:
        raise UsageProblem(f"{path} can't be written ({error}): name another folder by XDG_CONFIG_HOME.") from None


def target_of(server: str | None, context: str | None, files: Tls, env: Mapping[str, str]) -> Target:
    """The server that counts: that of --server, --context, OJS_URL, the current context, this machine. `files` are
    those that were named with it. Raises UsageProblem.
    """
    if server and context:
        raise UsageProblem("Name a server by --server or by --context, not both: a context's headers are for its own server.")
    found = _named(server, context, env)
    if files != Tls() and not found.url.startswith(HTTPS):
        raise UsageProblem(f"--ca-file, --cert-file and --key-file go with https:// addresses, not with {found.shown}.")
    found = msgspec.structs.replace(found, files=or_else(or_else(files, found.files), of_environment(env)))
    try:
        url_of(found.url)
        if found.tls is not None:
            Trust(found.tls)
    except ValueError as error:
        raise UsageProblem(f"{found.source}: {error}.") from None
    if any(name.lower() != "authorization" for name in found.headers) and not found.url.startswith("http"):
        raise UsageProblem(
            f"{found.source}: headers other than Authorization go with http:// and https:// addresses, not with "
            f"{masked(found.url)}."
        )
    return found


def _named(server: str | None, context: str | None, env: Mapping[str, str]) -> Target:
    if server:
        return Target(server, {}, "--server")
    if not context and (url := env.get("OJS_URL")):
        return Target(url, {}, "OJS_URL")
    contexts = read_contexts(env)
    if name := context or contexts.current:
        found = contexts.named(name)
        return Target(found.server, found.headers, f"context {name}", found.tls)
    return Target(DEFAULT_URL, {}, "the default")
