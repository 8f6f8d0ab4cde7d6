from __future__ import annotations

import io
import json
import re
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from ojs_command.client.output import Output, age, clean, json_text, shown
from ojs_engine.base.wording import counted, duration
from support.tables import each

NOW = datetime(2026, 11, 24, 8, 0, tzinfo=UTC)
ID = "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f"


def output(*, terminal: bool = False, as_json: bool = False, width: int = 100) -> tuple[Output, io.StringIO]:
    file = io.StringIO()
    console = Console(
        file=file, force_terminal=terminal, width=width, color_system="standard" if terminal else None, markup=False,
        highlight=False, emoji=False, soft_wrap=True,
    )  # fmt: skip
    return Output(as_json=as_json, console=console), file


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0ms"), (0.25, "250ms"), (1, "1s"), (61, "1m1s"), (3_600, "1h"), (90_000, "1d1h"), (86_400 * 40, "40d")],
)
def test_durations_have_their_two_largest_units(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_times_are_told_by_how_long_ago_they_were_or_will_be() -> None:
    assert age(NOW - timedelta(minutes=5), NOW) == "5m"
    assert age(NOW + timedelta(hours=2), NOW) == "in 2h"


@each(
    ("text", "seen"),
    [
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("\x9b1m", "\\x9b1m"),
        ("a\u202eb", "a\\u202eb"),
        ("a\u200bb\ufeff", "a\\u200bb\\ufeff"),
        ("a\U000e0041", "a\\U000e0041"),
        ("\u3164", "\\u3164"),
        ("\ud800", "\\ud800"),
        ("Zu\u0308rich, e\u0301te\u0301, 東京, नमस्ते, 👍", "Zu\u0308rich, e\u0301te\u0301, 東京, नमस्ते, 👍"),
    ],
)
def test_nothing_that_a_terminal_obeys_is_left(text: str, seen: str) -> None:
    assert clean(text) == seen
    assert shown(text).plain == seen
    assert shown([text]).plain == seen


def test_marks_do_not_pile_up_over_other_lines() -> None:
    assert clean("e" + 200 * "\u0301" + "x").count("\u0301") == 4


@pytest.mark.parametrize("terminal", [True, False])
def test_json_has_escapes_for_what_a_terminal_obeys_and_says_the_same(*, terminal: bool) -> None:
    said = {"a": ["\x9b1m", "\x7f", "\u202e", "\U000e0041", "é", "e" + 9 * "\u0301", "\n"], "b\u200b": 1}
    out, file = output(terminal=terminal)
    out.json(said)
    out.json_line(said)
    document, line = file.getvalue().rstrip().rsplit("\n", 1)
    assert json.loads(document) == json.loads(line) == json.loads(json_text(said)) == said
    assert not {"\x9b", "\x7f", "\u202e", "\U000e0041", "\u200b"} & set(document + line + json_text(said))
    assert "é" in line


def test_values_as_people_read_them() -> None:
    said = [shown(value).plain for value in (None, "", True, False, 1_234.56, 7, ["a", "b"], "active")]
    assert said == ["-", "-", "yes", "no", "1,234.6", "7", "a,b", "active"]
    assert shown("discarded").style == "red"
    assert shown("whatever").style == ""
    assert (counted(1, "job"), counted(2_000, "job")) == ("1 job", "2,000 jobs")
    assert json_text({"a": [1]}) == '{"a":[1]}'


def test_a_plain_table_is_for_grep_and_awk() -> None:
    out, file = output()
    out.table(("id", "last run"), [(ID, None), ("b", "[bold]x")])
    header, first, second = file.getvalue().splitlines()
    assert header.split() == ["ID", "LAST_RUN"]
    assert first.split() == [ID, "-"]
    assert second.split() == ["b", "[bold]x"]


@pytest.mark.parametrize("as_json", [True, False])
def test_things_are_told_as_people_or_programs_read_them(*, as_json: bool) -> None:
    out, file = output(as_json=as_json)
    out.listed([1, 2], ("number", "twice"), lambda number: (number, 2 * number), empty="none")
    out.one({"a": 1}, [("a", 1), ("b", None)])
    out.streamed(3, lambda number: Text(f"number {number}"))
    table = "NUMBER  TWICE\n1       2\n2       4\n"
    assert file.getvalue() == ('[1,2]\n{"a":1}\n3\n' if as_json else f"{table}a  1\nnumber 3\n")


@pytest.mark.parametrize("width", [64, 80])
def test_a_narrow_terminal_has_no_columns_that_would_break_the_rows(width: int) -> None:
    rows = [(ID, "a" * 40, "active", "what went wrong: " * 8)]
    out, file = output(terminal=True, width=width)
    out.table(("id", "queue", "state", "error"), rows)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", file.getvalue()).splitlines()
    assert max(map(len, lines)) <= width
    [row] = [line for line in lines if ID in line]
    assert "a" * 40 not in row
    assert "Too narrow for queue" in file.getvalue()
    assert "--json has all." in file.getvalue()


@pytest.mark.parametrize("width", [105, 120])
def test_only_the_last_column_gives_way_where_the_others_fit(width: int) -> None:
    rows = [(ID, "a" * 40, "active", "what went wrong: " * 8)]
    out, file = output(terminal=True, width=width)
    out.table(("id", "queue", "state", "error"), rows, whole=True)
    assert file.getvalue().count("wrong") == 8
    out, file = output(terminal=True, width=width)
    out.table(("id", "queue", "state", "error"), rows)
    [row] = [line for line in file.getvalue().splitlines() if ID in line]
    assert "a" * 40 in row
    assert row.count("…") == 1
    assert file.getvalue().count("wrong") < 8


def test_what_looks_like_markup_is_text() -> None:
    out, file = output(terminal=True)
    out.table(("a", "b"), [("[red]x[/red]", ":smile:")])
    out.text("[link=x]y[/link]")
    assert "[red]x[/red]" in file.getvalue()
    assert ":smile:" in file.getvalue()
    assert "[link=x]y[/link]" in file.getvalue()


def test_an_empty_table_is_a_note_beside_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    out, file = output()
    out.table(("a",), [], empty="Nothing here.")
    assert (file.getvalue(), capsys.readouterr().err) == ("", "Nothing here.\n")


def test_json_is_one_document_with_every_member() -> None:
    out, file = output(as_json=True)
    out.done("Done.", {"a": None, "b": [1]})
    assert msgspec.json.decode(file.getvalue()) == {"a": None, "b": [1]}
    assert file.getvalue().count("\n") == 1


def test_a_tree_is_indented_where_there_is_no_terminal() -> None:
    root = Tree(Text("ship"))
    root.add(Text("pack")).add(Text("wrap"))
    out, file = output()
    out.tree(root)
    assert file.getvalue() == "ship\n  pack\n    wrap\n"
    out, file = output(terminal=True)
    out.tree(root)
    assert "└── pack" in file.getvalue()
