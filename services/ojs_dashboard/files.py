"""The dashboard's files as a gateway serves them: read once, packed once, immutable under a hash of them all.

Its modules run as they are written. They are sent as one file, which is a fifth smaller than all of them by
themselves, and takes one request in place of twenty. Each module becomes a function that is called once; what it
imports and exports goes into it and comes out of it. Documentation comments (`/** … */`) aren't sent: those are types
and words for readers of the code.
"""

from __future__ import annotations

import gzip
import hashlib
import html
import posixpath
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

FOLDER: Final = Path(__file__).parent / "static"
LIBRARIES: Final = Path(__file__).parent / "libraries"
NEEDED: Final = {
    "lit-html.js": "lit-html/lit-html.js",
    "signals-core.js": "@preact/signals-core/dist/signals-core.mjs",
}
"""The libraries' files by the names that modules import them by, and where npm puts each."""
PAGES: Final = (
    "/",
    "/queues",
    "/queues/{name}",
    "/jobs",
    "/jobs/{id}",
    "/workflows",
    "/workflows/{id}",
    "/crons",
    "/crons/{name}",
    "/workers",
    "/limits",
    "/webhooks",
    "/events",
    "/system",
)
"""Where a browser gets the page. What it shows there is decided by `static/router.js`."""
ASSETS: Final = "/ui"
_MEDIA_TYPES: Final = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
FIRST: Final = ("app.js", *NEEDED)
"""Modules that the browser asks for at once, in place of one after the other."""
_COMMENTS: Final = re.compile(r"^[ \t]*/\*\*(?:(?!\*/).)*\*/[ \t]*\n|/\*\*(?:(?!\*/).)*\*/ ?", re.MULTILINE | re.DOTALL)
_IMPORT: Final = re.compile(r"^import (?:(\{[^}]*\})|\* as (\w+)) from '([^']+)';\n", re.MULTILINE)
_EXPORT: Final = re.compile(r"^export ((?:async )?(?:const|function|class) (\w+))", re.MULTILINE)
_UNLOADED: Final = """<div id="unloaded">
<h2>The dashboard could not be loaded</h2>
<p>Its files come from {base}/. The browser's console (F12) names the one that did not come, and why:</p>
<ul>
<li>403: a proxy passes another host on than the browser asks for. Have it pass Host on, or start the gateway with
<code>--allowed-origins</code>.</li>
<li>404: a proxy passes only some paths on. It has to pass /ui and /ojs/v1 on as well. Below a path of its own the
gateway has to know that path: <code>--path-prefix</code>.</li>
<li>No answer, or 5xx: the network, the proxy or the gateway. <code>ojs-nats doctor</code> asks the same server.</li>
<li>A syntax or type error: the browser is older than the dashboard needs.</li>
</ul>
</div>
"""
"""What is seen after a moment if `app.js` didn't take its place: no other script may run in the page."""
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types lit-html"
)
"""The Content-Security-Policy of the page."""


class File(NamedTuple):
    """One file as it is sent."""

    media_type: str
    body: bytes
    packed: bytes
    """The same, compressed by gzip."""


class Dashboard(NamedTuple):
    """The document of every page, and the files that it loads, by their paths below `ASSETS`."""

    document: File
    files: dict[str, File]


def missing(libraries: Path = LIBRARIES) -> list[str]:
    """Return the files of libraries that aren't there; without one of them there is no dashboard."""
    return [name for name in NEEDED if not (libraries / name).is_file()]


def load(
    *,
    prefix: str = "",
    folder: Path = FOLDER,
    libraries: Path = LIBRARIES,
) -> Dashboard | None:
    """Return the dashboard; None if a library is `missing`. `prefix` is the beginning of the browser's paths."""
    if missing(libraries):
        return None
    digest, files = _files(folder, libraries)
    document = _document(f"{prefix}{ASSETS}/{digest}", {"base": prefix})
    return Dashboard(_file("text/html; charset=utf-8", document), files)


@cache
def _files(folder: Path, libraries: Path) -> tuple[str, dict[str, File]]:
    """The hash of all files, and what is below it. They are read once in a process, however many gateways it has."""
    bodies = dict(_bodies(folder, libraries))
    digest = hashlib.sha256(b"\0".join(name.encode() + b"\0" + body for name, body in sorted(bodies.items()))).hexdigest()[:12]
    return digest, {f"{digest}/{name}": _file(_MEDIA_TYPES[Path(name).suffix], body) for name, body in bodies.items()}


def _bodies(folder: Path, libraries: Path) -> Iterator[tuple[str, bytes]]:
    modules: dict[str, str] = {}
    for path in sorted(folder.rglob("*.*")):
        name, text = path.relative_to(folder).as_posix(), _COMMENTS.sub("", path.read_text(encoding="utf-8"))
        if path.suffix == ".js":
            modules[name] = text
        else:
            yield name, text.encode()
    yield "app.js", "".join(_joined("app.js", modules, [])).encode()
    for name in NEEDED:
        # Their maps aren't served, so nobody is to look for them.
        text = (libraries / name).read_text(encoding="utf-8")
        yield name, re.sub(r"^//# sourceMappingURL=.*$", "", text, flags=re.MULTILINE).encode()


def _joined(name: str, modules: dict[str, str], done: list[str]) -> Iterator[str]:
    """A module behind those that it imports, each of them once.

    `done` are those that were met. Libraries stay modules.
    """
    done.append(name)
    for found in _IMPORT.finditer(modules[name]):
        imported = _imported(name, found)
        if imported in modules and imported not in done:
            yield from _joined(imported, modules, done)
        elif imported not in done:
            done.append(imported)
            yield f"import * as {_variable(imported)} from './{imported}';\n"
    text = _IMPORT.sub(lambda found: f"const {found[1] or found[2]} = {_variable(_imported(name, found))};\n", modules[name])
    exported = ", ".join(found[2] for found in _EXPORT.finditer(text))
    text = _EXPORT.sub(r"\1", text)
    # The first one waits for answers while it starts, which a function that is called at once can't.
    yield f"const {_variable(name)} = (() => {{\n{text}return {{ {exported} }};\n}})();\n" if exported else text


def _imported(by: str, found: re.Match[str]) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(by), found[3]))


def _variable(name: str) -> str:
    return "$" + re.sub(r"\W", "_", name.removesuffix(".js"))


def _document(base: str, settings: Mapping[str, str]) -> bytes:
    told = "".join(f'<meta name="ojs-{name}" content="{html.escape(value)}">\n' for name, value in settings.items())
    modules = "".join(f'<link rel="modulepreload" href="{base}/{name}">\n' for name in FIRST)
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
{told}<title>ojs-nats</title>
<link rel="icon" href="{base}/icon.svg">
<link rel="stylesheet" href="{base}/app.css">
{modules}<script type="module" src="{base}/app.js"></script>
<body>
<noscript>The dashboard needs JavaScript. The command line shows the same: ojs-nats --help.</noscript>
{_UNLOADED.format(base=base)}""".encode()


def _file(media_type: str, body: bytes) -> File:
    return File(media_type, body, gzip.compress(body, 9, mtime=0))
