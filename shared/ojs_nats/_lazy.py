"""Names of a package that are imported when they are first used: what starts `ojs-nats`, or pytest, needs none of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping


def names(package: str, places: Mapping[str, str]) -> Callable[[str], object]:
    """Return the `__getattr__` of a package.

    Args:
        package: The package's name.
        places: The modules of the package that define its names, by name.
    """

    def __getattr__(name: str) -> object:  # noqa: N807  # it is the package's
        from importlib import import_module  # noqa: PLC0415  # here, since it takes longer than all the rest

        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(f"{package}.{places[name]}"), name)
        found.__module__ = package  # where people find it, in tracebacks and pickles, too
        setattr(sys.modules[package], name, found)
        return found

    return __getattr__
