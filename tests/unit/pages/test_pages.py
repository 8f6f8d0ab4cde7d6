"""The pages name what there is: files, anchors, commands, options, settings and tests."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from ojs_command.main import main
from ojs_features.startup import OPTIONS as OF_FEATURES
from ojs_runtime.settings import OPTIONS

ROOT: Final = Path(__file__).parents[3]
PAGES: Final = sorted(
    [*ROOT.glob("*.md"), *(page for top in ("docs", "deploy", "bench") for page in (ROOT / top).rglob("*.md"))]
)
NOW: Final = [page for page in PAGES if page.name != "CHANGELOG.md" and page.parent.name != "adr"]
"""Pages that speak of this version; the others also name what there was."""
FENCE: Final = re.compile(r"^ {0,4}```.*?^ {0,4}```", re.MULTILINE | re.DOTALL)
LINK: Final = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
HEADING: Final = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
SPAN: Final = re.compile(r"`([^`\n]+)`")
COMMAND: Final = re.compile(r"(?<![\w/.-])ojs-nats ((?:[^`\n\\|;&<>()#]|\\\n)+)")
OPTION: Final = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")
TEST: Final = re.compile(r"\b(tests/[\w/.-]+\.py)(?:::(\w+))?")
DECISIONS: Final = ROOT / "docs" / "adr"
DECISION: Final = re.compile(r"\b(?:adr/|ADR )(\d{3})\b")
SETTING: Final = re.compile(r"\bOJS_[A-Z_]+[A-Z]\b")


class Place(NamedTuple):
    page: Path
    said: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}: {self.said}"


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the anchors that a page's headings have, as hosts of repositories make them."""
    found: dict[str, int] = {}
    names: set[str] = set(re.findall(r'<a (?:id|name)="([^"]+)"', text_of(page)))
    for heading in HEADING.findall(FENCE.sub("", text_of(page))):
        shown = LINK.sub(lambda link: link.group(0)[1:].split("](")[0], heading)
        slug = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        number = found.get(slug, 0)
        found[slug] = number + 1
        names.add(f"{slug}-{number}" if number else slug)
    return frozenset(names)


def links() -> Iterator[tuple[Place, str, str]]:
    for page in PAGES:
        for target in LINK.findall(SPAN.sub("", FENCE.sub("", text_of(page)))):
            if not re.match(r"[a-z]+:", target):
                path, _, anchor = target.partition("#")
                yield Place(page, target), path, anchor


def test_links_lead_to_files_and_anchors_that_there_are() -> None:
    broken = []
    for place, path, anchor in links():
        target = (place.page.parent / path).resolve() if path else place.page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            broken.append(str(place))
    assert broken == []


def code_of(page: Path) -> Iterator[str]:
    """Return the lines of a page's code blocks, and what stands between backticks."""
    text = text_of(page)
    for block in FENCE.findall(text):
        yield from block.replace("\\\n", " ").splitlines()[1:-1]
    yield from SPAN.findall(FENCE.sub("", text))


@cache
def help_of(*words: str) -> str | None:
    """Return the help of a command; None if there is no such command."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            main([*words, "--help"])
    except SystemExit as ended:
        if ended.code:
            return None
    return said.getvalue()


def commands() -> Iterator[tuple[Place, list[str]]]:
    for page in NOW:
        for line in code_of(page):
            for command in COMMAND.findall(line):
                if (words := command.split()) and re.fullmatch(r"[a-z][a-z-]+", words[0]):
                    yield Place(page, f"ojs-nats {command.strip()}"), words


def test_commands_and_their_options_exist() -> None:
    settings = {f"--{option.name.replace('_', '-')}" for option in (*OPTIONS, *OF_FEATURES)}
    wrong = []
    for place, words in commands():
        known = help_of(words[0])
        if known is None:
            wrong.append(str(place))
            continue
        action = words[1] if len(words) > 1 and re.fullmatch(r"[a-z][a-z-]+", words[1]) else "list"
        known += help_of(words[0], action) or ""
        options = {option for word in words for option in OPTION.findall(word.split("=")[0])}
        if unknown := options - set(OPTION.findall(known)) - settings:
            wrong.append(f"{place} ({', '.join(sorted(unknown))})")
    assert wrong == []


def test_tests_that_pages_name_exist() -> None:
    gone = []
    for page in NOW:
        for path, name in TEST.findall(text_of(page)):
            file = ROOT / path
            if not file.exists() or (name and f"def {name}" not in file.read_text(encoding="utf-8")):
                gone.append(str(Place(page, f"{path}::{name}")))
    assert gone == []


def test_the_index_of_decisions_has_each_record() -> None:
    index = text_of(DECISIONS / "README.md")
    assert [record.name for record in sorted(DECISIONS.glob("[0-9]*.md")) if f"]({record.name})" not in index] == []


def test_decisions_that_are_named_anywhere_exist() -> None:
    there = {record.name[:3] for record in DECISIONS.glob("[0-9]*.md")}
    tops = ("shared", "services", "tests", "script", "bench", "docs", "deploy")
    files = [ROOT / "pyproject.toml", *ROOT.glob("*.md")]
    files += [path for top in tops for path in (ROOT / top).rglob("*") if path.suffix in {".py", ".md", ".toml", ".js"}]
    gone = []
    for path in files:
        if "node_modules" not in path.parts and path.parent != DECISIONS:
            named = DECISION.findall(path.read_text(encoding="utf-8"))
            gone += [f"{path.relative_to(ROOT)}: {number}" for number in named if number not in there]
    assert gone == []


def test_settings_that_pages_name_exist() -> None:
    sources = [*(ROOT / "services").rglob("*.py"), *(ROOT / "shared").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    sources += [*(ROOT / "script").iterdir(), *(ROOT / "bench").rglob("*.py"), ROOT / ".ci" / "run"]
    files = [path for path in sources if path.is_file() and "node_modules" not in path.parts]
    written = "\n".join(path.read_text(encoding="utf-8") for path in files)
    known = {f"OJS_{option.name.upper()}" for option in (*OPTIONS, *OF_FEATURES)} | set(SETTING.findall(written))
    unknown = [str(Place(page, name)) for page in NOW for name in SETTING.findall(text_of(page)) if name not in known]
    assert unknown == []


def test_no_page_installs_from_an_index_what_is_not_there() -> None:
    """The package is in no index: a name without a path would install a stranger's."""
    by_name = re.compile(r"pip install .*['\" ]ojs[-_]nats")
    wrong = [str(Place(page, line)) for page in NOW for line in code_of(page) if by_name.search(line)]
    assert wrong == []


def test_the_page_of_the_command_line_has_every_command() -> None:
    table = text_of(ROOT / "docs" / "cli.md").split("## Commands")[1].split("\n## ")[0]
    first = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    named = set(re.findall(r"`([a-z-]+)`", "\n".join(first)))
    listed = set(re.findall(r"^    ([a-z][a-z-]+) ", help_of() or "", re.MULTILINE))
    assert listed
    assert listed - named == set()
