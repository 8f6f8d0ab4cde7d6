"""Services as a command line knows them before it imports one."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, cast

import msgspec

from ojs_runtime.settings import Option, SettingKind

if TYPE_CHECKING:
    from ojs_runtime.service import Build  # which takes what only a server needs


class ServiceEntry(msgspec.Struct, frozen=True):
    """One service: a process of its own, any number of each, anywhere."""

    name: str
    target: str  # "package:function", imported only by the process that runs it
    help: str
    kind: SettingKind = "service"
    nice: int = 0
    """How much a process of its own steps back for others on a full machine."""
    examples: str = ""
    """The examples of its help, where they aren't those of its kind."""

    def load(self) -> Build:
        package, function = self.target.split(":")
        return cast("Build", getattr(importlib.import_module(package), function))


class Startup(msgspec.Struct, frozen=True):
    """The settings and processes of a feature. A command line knows them without the feature itself."""

    name: str
    options: tuple[Option, ...] = ()
    processes: tuple[ServiceEntry, ...] = ()
