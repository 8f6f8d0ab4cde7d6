"""The command `ojs-nats` in a checkout without some features: `python -P without.py NAMES WORDS …`.

NAMES are folders of `ojs_features`, with commas between them, or `all`. It runs as if their folders and their lines in
the lists of features had been deleted: importing one fails.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Final

FOLDER: Final = Path(__file__).parents[2] / "shared" / "ojs_features"
NAMES: Final = tuple(sorted(file.parent.name for file in FOLDER.glob("*/plug.py")))
"""All features that there are."""
_LISTS: Final = ("ojs_features.all", "ojs_features.startup")


def without(*names: str) -> tuple[str, ...]:
    """Return the command without these features."""
    return (sys.executable, "-P", __file__, ",".join(names))


class _Cut(ast.NodeTransformer):
    """Takes the imports of features, and the names that they bind, out of a list of features."""

    def __init__(self, gone: Sequence[str]) -> None:
        self._gone = tuple(f"ojs_features.{name}." for name in gone)
        self._names: set[str] = set()

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:  # as ast names it
        if not (node.module or "").startswith(self._gone):
            return node
        self._names |= {alias.asname or alias.name for alias in node.names}
        return None

    def visit_Tuple(self, node: ast.Tuple) -> ast.AST:  # as ast names it
        node.elts = [one for one in node.elts if not (isinstance(one, ast.Name) and one.id in self._names)]
        return node


class Removed(MetaPathFinder, Loader):
    """Imports the lists of features without some of them, and refuses to import these."""

    def __init__(self, gone: Sequence[str]) -> None:
        self._gone = gone

    def find_spec(self, fullname: str, _path: object, _target: object = None) -> ModuleSpec | None:
        if any(f"{fullname}.".startswith(f"ojs_features.{name}.") for name in self._gone):
            raise ModuleNotFoundError(f"{fullname} was left out", name=fullname)
        return spec_from_loader(fullname, self) if fullname in _LISTS else None

    def exec_module(self, module: ModuleType) -> None:
        file = FOLDER / f"{module.__name__.rpartition('.')[2]}.py"
        tree = ast.fix_missing_locations(_Cut(self._gone).visit(ast.parse(file.read_text(encoding="utf-8"))))
        exec(compile(tree, str(file), "exec"), vars(module))  # the project's own source


def main() -> int:
    names = sys.argv.pop(1)
    sys.meta_path.insert(0, Removed(NAMES if names == "all" else names.split(",")))
    from ojs_nats._command.entry import main as command  # noqa: PLC0415  # imported as it is without them

    return command()


if __name__ == "__main__":
    sys.exit(main())
