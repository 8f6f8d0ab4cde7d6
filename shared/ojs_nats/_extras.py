"""Packages that only some users need: imported when what needs them is used."""

from __future__ import annotations

import importlib
from types import ModuleType

from ojs_nats.errors import MissingDependencyError


def extra(module: str, *, of: str, what: str) -> ModuleType:
    """The module, from the extra `of` of this package. Raises MissingDependencyError, which names `what` needs it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if not f"{module}.".startswith(f"{error.name}."):
            raise  # it is there, and imports something that isn't
        raise MissingDependencyError(
            f"{what} needs {error.name}, which isn't installed: pip install 'ojs-nats[{of}]'"
        ) from None
