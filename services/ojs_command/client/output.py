"""What commands print: tables and colours on a terminal, plain columns elsewhere, or JSON."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

import msgspec
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from ojs_engine.base.wording import duration

T = TypeVar("T")
Row = Sequence[object]

_UNSEEN: Final = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
"""Categories of characters that a terminal obeys, or that nobody sees: controls, directions, zero-width ones, tags."""
_BLANK: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and marks that nobody sees either."""
_MARKS: Final = frozenset({"Mn", "Me"})
_MOST_MARKS: Final = 4
"""Marks above and below one letter; more would cover the lines around it."""
_LAST: Final = 20
"""Columns of a terminal that the last column of a table gets at least, if it needs them."""
_GAP: Final = 3
"""At most, around a cell."""
_FEWEST: Final = 2
"""Columns of a table that are never left out: the first, which names what the row is about, and the last."""
_STYLES: Final = {
    "available": "cyan", "scheduled": "blue", "pending": "blue", "active": "yellow", "retryable": "magenta",
    "completed": "green", "cancelled": "dim", "discarded": "red",
    "running": "green", "quiet": "yellow", "drain": "yellow", "terminate": "yellow", "stale": "red",
    "paused": "yellow", "draining": "yellow", "failed": "red", "waiting": "dim",
    "ok": "green", "warning": "yellow", "problem": "bold red", "degraded": "yellow", "yes": "green", "no": "dim",
    "healthy": "green", "unhealthy": "red", "full": "red", "unwritable": "red",
}  # fmt: skip
"""Colours of the words that states go by."""


class Output:
    """Standard output. `as_json` prints one document, or a line for each thing of a stream, and nothing else."""

    def __init__(self, *, as_json: bool = False, console: Console | None = None) -> None:
        self.as_json = as_json
        self.console = console or Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
        self._notes = Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)

    @property
    def on_terminal(self) -> bool:
        return self.console.is_terminal

    @property
    def notes_on_terminal(self) -> bool:
        return self._notes.is_terminal

    def json(self, value: Any) -> None:
        """The document."""
        document = msgspec.json.encode(_with_absent(value))
        if self.on_terminal:
            document = msgspec.json.format(document, indent=2)
        self._plain(self._encodable(_cleaned(document.decode(), _in_json)))

    def json_line(self, value: Any) -> None:
        """One of many."""
        self._plain(self._encodable(json_text(value)))

    def text(self, line: str | Text = "") -> None:
        """A line for people."""
        told = line if isinstance(line, Text) else Text(clean(line))
        if self.on_terminal:
            self.console.print(told)
        else:
            self._plain(told.plain)

    def heading(self, title: str) -> None:
        """Of what follows."""
        self.text()
        self.text(Text(title, "bold"))

    def done(self, said: str, value: Any) -> None:
        """What was done: a sentence, or what the server answered."""
        if self.as_json:
            self.json(value)
        else:
            self.text(said)

    def listed(self, found: Sequence[T], columns: Sequence[str], row: Callable[[T], Row], *, empty: str) -> None:
        """Things in a table, a row for each, or as a JSON array."""
        if self.as_json:
            self.json(found)
        else:
            self.table(columns, map(row, found), empty=empty)

    def one(self, value: Any, pairs: Iterable[tuple[str, object]]) -> None:
        """One thing: its members, or the document."""
        if self.as_json:
            self.json(value)
        else:
            self.members(pairs)

    def streamed(self, value: T, line: Callable[[T], Text]) -> None:
        """One of many that come one after the other: a line that is seen at once."""
        if self.as_json:
            self.json_line(value)
        else:
            self.text(line(value))
        self.flush()

    def raw(self, text: str) -> None:
        """As it is: for another program."""
        self._plain(text)

    def flush(self) -> None:
        """What was printed is to be seen now."""
        self.console.file.flush()

    def note(self, said: str) -> None:
        """Something beside the answer, to standard error."""
        sys.stderr.write(f"{clean(said)}\n")

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str = "", whole: bool = False) -> None:
        """Rows under their columns, numbers to the right; `empty` is a note that says so if there are none. On a
        terminal what is long in the last column is cut to a line, unless the `whole` of it is to be seen.
        """
        told = [[shown(cell) for cell in row] for row in rows]
        if not told:
            self.note(empty)
        elif self.on_terminal:
            self.console.print(table(columns, told, self.console.width, whole=whole), soft_wrap=False, crop=False)
        else:
            for line in _columns(columns, told):
                self._plain(line)

    def members(self, pairs: Iterable[tuple[str, object]]) -> None:
        """What is known of one thing, a line for each; None is left out."""
        told = [(name, shown(value)) for name, value in pairs if value is not None]
        width = max((len(name) for name, _ in told), default=0)
        for name, value in told:
            self.text(Text.assemble((f"{name:<{width}}", "dim"), "  ", value))

    def tree(self, root: Tree) -> None:
        """Steps in steps; elsewhere than on a terminal indented by blanks."""
        if self.on_terminal:
            self.console.print(root)
        else:
            for line in _indented(root, 0):
                self._plain(line)

    @contextmanager
    def progress(self, what: str, total: int | None) -> Iterator[Advance]:
        """A bar on standard error while the block runs, if that is a terminal."""
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=self._notes, transient=True, disable=not self._notes.is_terminal) as bar:
            yield Advance(bar, bar.add_task(what, total=total))

    def _encodable(self, document: str) -> str:
        """Return JSON with escapes for what isn't ASCII, if standard output's encoding lacks some of it."""
        try:
            document.encode(getattr(self.console.file, "encoding", None) or "utf-8")
        except UnicodeEncodeError:
            return "".join(sign if sign.isascii() else json.dumps(sign)[1:-1] for sign in document)
        return document

    def _plain(self, line: str) -> None:
        print(line, file=self.console.file)


class Advance:
    """Moves a bar."""

    def __init__(self, bar: Progress, task: Any) -> None:
        self._bar = bar
        self._task = task

    def by(self, number: int, total: int | None = None) -> None:
        """Move it; `total` is where it ends, if that has changed."""
        self._bar.update(self._task, advance=number, total=total)


def table(columns: Sequence[str], rows: Iterable[Sequence[Text]], width: int, *, whole: bool = False) -> Table:
    """Make one for a terminal of that many columns. The last column gives way: it is cut, or broken into lines for the
    `whole` of it. If the others don't fit, those to the right are left out, but for the last one: an id stays whole.
    """
    rows = list(rows)
    last = len(columns) - 1
    widest = [max(map(cell_len, (name, *(row[place].plain for row in rows)))) for place, name in enumerate(columns)]
    least = [*widest[:-1], min(widest[-1], _LAST)]
    kept = list(range(len(columns)))
    while sum(least[place] + _GAP for place in kept) > width and len(kept) > _FEWEST:
        del kept[-2]
    needed = sum(least[place] + _GAP for place in kept)
    left_out = [name for place, name in enumerate(columns) if place not in kept]
    note = f"Too narrow for {', '.join(left_out)}: --json has all." if left_out else None
    made = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold", caption=note, caption_justify="left")
    for place in kept:
        number = bool(rows) and all(_is_number(row[place].plain) for row in rows)
        breaks = place == last and whole
        made.add_column(
            columns[place],
            justify="right" if number else "left",
            no_wrap=not breaks,
            overflow="fold" if breaks else "ellipsis",
            min_width=least[place],
            # or the terminal would take from all columns alike
            max_width=least[place] + max(width - needed, 0) if place == last else None,
        )
    for row in rows:
        made.add_row(*(row[place] for place in kept))
    if needed > width:
        made.width = needed
    return made


def shown(value: object) -> Text:
    """A value as people read it: states in colours, times as how long ago, nothing as a dash."""
    match value:
        case Text():
            return value
        case None | "":
            return Text("-", "dim")
        case bool():
            return shown("yes" if value else "no")
        case datetime():
            return Text(age(value))
        case float():
            return Text(f"{value:,.1f}")
        case str():
            return Text(clean(value), _STYLES.get(value, ""))
        case list() | tuple():
            return Text(clean(",".join(map(str, value))))
        case _:
            return Text(clean(str(value)))


def clean(text: str) -> str:
    """Without what a terminal would obey or nobody would see: what others have put into jobs is shown, not done."""
    return _cleaned(text, lambda sign: sign.encode("unicode_escape").decode())


def age(when: datetime, now: datetime | None = None) -> str:
    """`5m`, or `in 5m`: how long ago it was, or how soon it will be."""
    seconds = ((now or datetime.now(UTC)) - when).total_seconds()
    return duration(seconds) if seconds >= 0 else f"in {duration(-seconds)}"


def at(when: datetime | None) -> str | None:
    """A time in full, with how long ago it was."""
    return None if when is None else f"{when.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC ({age(when)})"


def json_text(value: object) -> str:
    """A value in a line of JSON, with escapes for what `clean` takes out."""
    return _cleaned(msgspec.json.encode(_with_absent(value)).decode(), _in_json)


def _with_absent(value: object) -> object:
    """Return what structs have as objects with all their members: what the server left out is null or empty."""
    if isinstance(value, msgspec.Struct):
        names = zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True)
        return {name: _with_absent(getattr(value, field)) for field, name in names}
    return [_with_absent(each) for each in value] if isinstance(value, list | tuple) else value


def say(message: str) -> None:
    """A sentence to standard error."""
    sys.stderr.write(f"ojs-nats: {clean(message)}\n")


def _cleaned(text: str, escaped: Callable[[str], str]) -> str:
    """Replace what is obeyed or isn't seen by what `escaped` says; the line breaks of a document in JSON stay."""
    if text.isascii() and text.isprintable():
        return text
    made: list[str] = []
    marks = 0
    for sign in text:
        category = unicodedata.category(sign)
        marks = marks + 1 if category in _MARKS else 0
        made.append(escaped(sign) if category in _UNSEEN or sign in _BLANK or marks > _MOST_MARKS else sign)
    return "".join(made)


def _in_json(sign: str) -> str:
    """Return a character as JSON escapes it. Those that stand outside of texts are line breaks alone."""
    return sign if sign == "\n" else json.dumps(sign)[1:-1] if sign != "\x7f" else "\\u007f"


def _columns(columns: Sequence[str], rows: Sequence[Sequence[Text]]) -> Iterator[str]:
    """Aligned by blanks, for grep and awk: a header, then a line for each row."""
    lines = [[name.upper().replace(" ", "_") for name in columns], *([cell.plain for cell in row] for row in rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(columns))]
    for line in lines:
        yield "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()


def _indented(node: Tree, depth: int) -> Iterator[str]:
    yield f"{'  ' * depth}{node.label}"
    for child in node.children:
        yield from _indented(child, depth + 1)


def _is_number(text: str) -> bool:
    return text == "-" or text.replace(",", "").replace(".", "", 1).isdigit()
