"""Contexts of TLS, of the files that a client is given."""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from ojs_nats.tls import Tls

HTTPS: Final = "https://"
_VARIABLES: Final = {"ca_file": "OJS_CA_FILE", "cert_file": "OJS_CERT_FILE", "key_file": "OJS_KEY_FILE"}


def of_environment(env: Mapping[str, str] = os.environ) -> Tls:
    """Return the files that OJS_CA_FILE, OJS_CERT_FILE and OJS_KEY_FILE name.

    Args:
        env: The environment variables.
    """
    return Tls(**{name: env.get(variable, "") for name, variable in _VARIABLES.items()})


def or_else(files: Tls, other: Tls) -> Tls:
    """Return these files, and those of `other` where these name none. A key is only taken along with its certificate."""
    own = files if files.cert_file or files.key_file else other
    return Tls(files.ca_file or other.ca_file, own.cert_file, own.key_file)


class Trust:
    """The TLS context of new connections.

    Args:
        tls: The files, or a context. None means the files that the environment names.
        now: A clock, in seconds.
        files_s: How often, at most, files are checked whether they have changed.

    Raises:
        ValueError: The files can't be used.
    """

    def __init__(
        self, tls: Tls | ssl.SSLContext | None, now: Callable[[], float] = time.monotonic, files_s: float = 10.0
    ) -> None:
        """None stands for what the environment says. Raises ValueError for files that can't be used."""
        self._files_s = files_s
        self._now = now
        self._files = of_environment() if tls is None else tls if isinstance(tls, Tls) else Tls()
        self._names = _VARIABLES if tls is None else {name: name for name in _VARIABLES}
        self._context = tls if isinstance(tls, ssl.SSLContext) else _context(self._files, self._names)
        self._seen = _seen(self._files)
        self._look_at = now() + files_s

    def context(self) -> ssl.SSLContext:
        """Return the context of the files as they are now, or as they were before they became unusable."""
        if self._now() >= self._look_at:
            self._look_at = self._now() + self._files_s
            seen = _seen(self._files)
            if seen != self._seen:
                try:
                    self._context = _context(self._files, self._names)
                except ValueError:  # one of them may be on its way
                    return self._context
                self._seen = seen
        return self._context


def check_scheme(url: str, tls: Tls | ssl.SSLContext | None) -> None:
    """Check that an address and TLS fit. Files that the environment names are read when a connection is needed.

    Args:
        url: The server's address.
        tls: The files, or a context. None checks nothing.

    Raises:
        ValueError: The address isn't `https://`, or the files can't be used.
    """
    if tls is not None and not url.startswith(HTTPS):
        raise ValueError("tls is for https:// addresses, and this one isn't")
    if isinstance(tls, Tls):
        Trust(tls)


def _context(files: Tls, names: Mapping[str, str]) -> ssl.SSLContext:
    """`names` are what the user wrote. Raises ValueError."""
    for field, name in names.items():
        if file := getattr(files, field):
            try:
                Path(file).read_bytes()
            except OSError as error:
                raise ValueError(f"{name} {file} can't be read ({error.strerror}): correct the path") from None
    try:
        context = ssl.create_default_context(cafile=files.ca_file or None)
    except ssl.SSLError:
        raise ValueError(f"{names['ca_file']} {files.ca_file} holds no certificate in PEM: name the CA's") from None
    if files.cert_file:
        try:
            context.load_cert_chain(files.cert_file, files.key_file or None, _no_passphrase)
        except ssl.SSLError as error:
            why = (error.reason or "no PEM").lower().replace("_", " ")
            key = files.key_file or files.cert_file
            raise ValueError(
                f"{names['cert_file']} {files.cert_file} can't be used with the key in {key} ({why}): name the two that "
                "belong together"
            ) from None
    elif files.key_file:
        raise ValueError(
            f"{names['key_file']} {files.key_file} is named without {names['cert_file']}: name the key's certificate, too"
        )
    return context


def _no_passphrase() -> str:
    """Refuse a key that is encrypted; without this, OpenSSL would ask at the terminal."""
    raise ValueError("the key is encrypted, and nobody is there to give its passphrase: name a key without one")


def _seen(files: Tls) -> list[tuple[int, int, int]]:
    """Return marks that change with the files."""
    found = []
    for field in _VARIABLES:
        if file := getattr(files, field):
            try:
                stat = Path(file).stat()
            except OSError:
                continue
            found.append((stat.st_ino, stat.st_size, stat.st_mtime_ns))
    return found
