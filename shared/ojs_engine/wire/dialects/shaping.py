"""How the layer writes down what a reader gets in place of an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from ojs_engine.wire.dialects.readers import Reader

Shape = Callable[[Any], Any]
"""From an answer to what is encoded in its place."""
Shapes = Mapping[type[Struct], Mapping[Reader, Shape]]
"""By the type of an answer; whoever is not named gets the answer as it is."""
