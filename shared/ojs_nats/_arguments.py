"""From a call to a job's `args` and back: the handler's parameters in order, so that any language can push the job."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, get_type_hints

import msgspec

from ojs_nats._dependencies import Dependency
from ojs_nats._worker.context import JobContext
from ojs_nats._worker.outcome import Unfit


class Parameters:
    """The parameters of a handler; its context and its dependencies, `injected`, aren't among them."""

    def __init__(self, handler: Callable[..., Any]) -> None:
        hints = get_type_hints(handler, include_extras=True)
        self.returns: Any = hints.get("return", Any)
        declared = list(inspect.signature(handler).parameters.values())
        self.takes_context = bool(declared) and hints.get(declared[0].name) is JobContext
        rest = declared[1:] if self.takes_context else declared
        self.injected = {p.name: p.default for p in rest if isinstance(p.default, Dependency)}
        named = [parameter for parameter in rest if parameter.name not in self.injected]
        for parameter in rest:
            if parameter.name in self.injected and parameter.kind is not parameter.KEYWORD_ONLY:
                raise TypeError(f"{handler.__qualname__}: {parameter.name!r} is no argument of its jobs, so put it behind a *")
        for parameter in named:
            if parameter.kind in {parameter.VAR_KEYWORD, parameter.KEYWORD_ONLY}:
                raise TypeError(
                    f"{handler.__qualname__}: a job's arguments are a list, so {parameter.name!r} can't be by name alone; "
                    "make it a positional parameter, or a dependency: = Depends(…)"
                )
        self._signature = inspect.Signature(named)
        self._types = [hints.get(parameter.name, Any) for parameter in named if parameter.kind is not parameter.VAR_POSITIONAL]
        self._rest = next((hints.get(p.name, Any) for p in named if p.kind is p.VAR_POSITIONAL), None)
        self._required = sum(p.default is p.empty and p.kind is not p.VAR_POSITIONAL for p in named)

    def listed(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments of a call, in order; defaults behind the last that is given are left to the handler.

        Raises TypeError as the call would.
        """
        bound = self._signature.bind(*args, **kwargs)
        if bound.kwargs:  # one behind a default that wasn't given
            bound.apply_defaults()
        return bound.args

    def given(self, context: JobContext) -> list[Any]:
        """What the handler is to be called with, but its dependencies. Raises Unfit if the job's arguments aren't its own."""
        try:
            converted = self.converted(context.job.args)
        except (TypeError, msgspec.ValidationError) as error:
            raise Unfit(str(error)) from error
        return [context, *converted] if self.takes_context else converted

    def converted(self, sent: Sequence[Any]) -> list[Any]:
        """What a job brings, as the types that the handler's hints name.

        Raises TypeError if there are too few or too many, msgspec.ValidationError if one is of another type.
        """
        if len(sent) < self._required or (len(sent) > len(self._types) and self._rest is None):
            most = "any number" if self._rest is not None else str(len(self._types))
            raise TypeError(f"the handler takes {self._required} to {most} arguments, and the job has {len(sent)}")
        found: list[Any] = []
        for index, value in enumerate(sent):
            wanted = self._types[index] if index < len(self._types) else self._rest
            try:
                found.append(msgspec.convert(value, wanted))
            except msgspec.ValidationError as error:
                raise msgspec.ValidationError(f"args[{index}]: {error}") from None
        return found
