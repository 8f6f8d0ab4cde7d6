"""Client commands of `ojs-nats` as processes: piped, and on a terminal."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from support.forked import OJS_NATS, Forked, completed
from support.system import environment

_SECONDS = 60.0
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Said(NamedTuple):
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on standard output."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """The documents on standard output, one a line."""
        return [json.loads(line) for line in self.out.splitlines()]


class Piped(NamedTuple):
    """A command that runs, and the ends of its pipes."""

    process: Forked
    stdout: TextIO
    stderr: TextIO

    def said(self) -> Said:
        """Return what it printed that hasn't been read, once it has ended."""
        out, err = self.stdout.read(), self.stderr.read()
        return Said(self.process.wait(_SECONDS), out, err)


class Cli(NamedTuple):
    """The command with a server and a folder of settings of its own."""

    folder: Path
    url: str = ""
    more: Mapping[str, str] = {}
    """Further variables of its environment."""

    @property
    def env(self) -> dict[str, str]:
        named = {"OJS_URL": self.url} if self.url else {}
        return environment(XDG_CONFIG_HOME=str(self.folder), HOME=str(self.folder), TERM="xterm-256color", **named, **self.more)

    def __call__(self, *words: str, stdin: str = "", program: Sequence[str] = OJS_NATS) -> Said:
        """Run it without a terminal."""
        said = completed([*program, *words], self.env, text=stdin)
        return Said(said.returncode, said.stdout, said.stderr)

    def asked(self, *words: str, stdin: str = "") -> str:
        """What it prints when all goes well."""
        said = self(*words, stdin=stdin)
        assert said.code == 0, said
        return said.out

    def json(self, *words: str, stdin: str = "") -> Any:
        """The one document that it prints, with nothing else, when all goes well."""
        said = self(*words, "--json", stdin=stdin)
        assert said.code == 0, said
        return said.json

    @contextmanager
    def started(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """Run it while the block does, from its real start and with pipes."""
        piped: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen([*OJS_NATS, *words], text=True, env=self.env, **piped)
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    @contextmanager
    def piped(self, *words: str) -> Iterator[Piped]:
        """Run it while the block does, forked, with its output in pipes."""
        (out, theirs), (err, their_errors) = os.pipe(), os.pipe()
        with os.fdopen(out, encoding="utf-8") as stdout, os.fdopen(err, encoding="utf-8") as stderr:
            with Path(os.devnull).open("rb") as nothing:
                process = Forked(words, self.env, (nothing.fileno(), theirs, their_errors), Path.cwd())
            os.close(theirs)
            os.close(their_errors)
            try:
                yield Piped(process, stdout, stderr)
            finally:
                process.kill()
                process.wait(_SECONDS)

    @contextmanager
    def on_terminal(self, *words: str, stdin: Path | None = None) -> Iterator[Terminal]:
        """Run it on a terminal while the block does; it may read a file all the same."""
        terminal = Terminal(words, self.env, stdin)
        try:
            yield terminal
        finally:
            terminal.close()


class Terminal:
    """A command on a terminal of 160 columns and 50 lines."""

    def __init__(self, arguments: Sequence[str], env: dict[str, str], stdin: Path | None) -> None:
        self.raw = ""
        self._end, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
        files = [theirs] * 3
        if stdin is not None:
            files[0] = os.open(stdin, os.O_RDONLY)
        self._process = Forked(arguments, env, (files[0], files[1], files[2]), Path.cwd(), terminal=True)
        for file in set(files):
            os.close(file)

    @property
    def text(self) -> str:
        """Without colours."""
        return _ESCAPE.sub("", self.raw)

    def until(self, words: str) -> None:
        """Wait until it has shown these words."""
        late = time.monotonic() + _SECONDS
        while words not in self.text:
            assert time.monotonic() < late, self.text[-4_000:]
            assert self._read() or words in self.text, self.text[-4_000:]

    def glance(self) -> None:
        """Read what it has shown by now."""
        while select.select([self._end], [], [], 0.2)[0] and self._read():
            pass

    def type(self, text: str) -> None:
        os.write(self._end, text.encode())

    def code(self) -> int:
        """Its exit code, once it has ended."""
        while self._read():
            pass
        return self._process.wait(_SECONDS)

    def close(self) -> None:
        self._process.kill()
        self._process.wait(_SECONDS)
        os.close(self._end)

    def _read(self) -> bool:
        """Read some; False once it has ended."""
        ready, _, _ = select.select([self._end], [], [], _SECONDS)
        assert ready, f"nothing for {_SECONDS} s: {self.text}"
        try:
            found = os.read(self._end, 65_536)
        except OSError:  # Linux's way to say that the other end is closed
            return False
        self.raw += found.decode(errors="replace")
        return bool(found)
