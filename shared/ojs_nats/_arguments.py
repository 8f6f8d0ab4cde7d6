"""From a call to a job's `args` and back: the handler's parameters in order, so that any language can push the job."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Never, NoReturn

import msgspec

from ojs_nats._dependencies import Dependency
from ojs_nats._foreign import reader
from ojs_nats._hints import check_fillable, hints_of, mentions
from ojs_nats._plain import plain
from ojs_nats.worker._context import JobContext
from ojs_nats.worker._outcome import Unfit


class Parameters:
    """The parameters of a handler; its context and its dependencies, `injected`, aren't among them.

    Raises TypeError for a handler that couldn't be called with what a job brings.
    """

    def __init__(self, handler: Callable[..., Any]) -> None:
        self._called = getattr(handler, "__qualname__", repr(handler))
        if not inspect.isroutine(handler):
            raise TypeError(f"{self._called}: a job's handler is a function, so write one that calls this")
        if inspect.isgeneratorfunction(handler) or inspect.isasyncgenfunction(handler):
            raise TypeError(
                f"{self._called}: a handler returns its job's result, so it can't be a generator: leave out its yield"
            )
        hints = hints_of(handler)
        returns = hints.get("return", Any)
        self.returns: Any = Any if returns in {Never, NoReturn} else returns
        declared = list(inspect.signature(handler).parameters.values())
        first = declared[0] if declared else None
        self.takes_context = (
            first is not None
            and hints.get(first.name) is JobContext
            and first.kind in {first.POSITIONAL_ONLY, first.POSITIONAL_OR_KEYWORD}
        )
        rest = declared[1:] if self.takes_context else declared
        self.injected = {p.name: p.default for p in rest if isinstance(p.default, Dependency)}
        named = [parameter for parameter in rest if parameter.name not in self.injected]
        for parameter in rest:
            self._check_kind(parameter, hints.get(parameter.name, Any))
        for parameter in named:
            check_fillable(handler, parameter.name, hints.get(parameter.name, Any))
        check_fillable(handler, "return", returns)
        self._reads_result = reader(self.returns)
        self._signature = inspect.Signature(named)
        self._names = [parameter.name for parameter in named]
        self._readers = [reader(hints.get(p.name, Any)) for p in named if p.kind is not p.VAR_POSITIONAL]
        self._rest = next((reader(hints.get(p.name, Any)) for p in named if p.kind is p.VAR_POSITIONAL), None)
        self._required = sum(p.default is p.empty and p.kind is not p.VAR_POSITIONAL for p in named)

    def _check_kind(self, parameter: inspect.Parameter, hint: Any) -> None:
        if parameter.name in self.injected:
            if parameter.kind is not parameter.KEYWORD_ONLY:
                raise TypeError(f"{self._called}: {parameter.name!r} is no argument of its jobs, so put it behind a *")
        elif mentions(hint, JobContext):
            raise TypeError(
                f"{self._called}: {parameter.name!r} can't be given the running job: only a handler's first parameter is, "
                "if its hint is JobContext and it isn't by name alone"
            )
        elif parameter.kind in {parameter.VAR_KEYWORD, parameter.KEYWORD_ONLY}:
            raise TypeError(
                f"{self._called}: a job's arguments are a list, so {parameter.name!r} can't be by name alone; "
                "make it a positional parameter, or a dependency: = Depends(…)"
            )

    def listed(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Return the arguments of a call, in order; defaults behind the last that is given are left to the handler.

        Raises TypeError as the call would, and for an argument that the worker couldn't convert to its hint's type; ValueError
        and TypeError for what JSON can't hold.
        """
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:  # it doesn't say of what
            raise TypeError(f"{self._called}: {error}") from None
        if bound.kwargs:  # one behind a default that wasn't given
            bound.apply_defaults()
        for index, value in enumerate(bound.args):
            name = self._names[min(index, len(self._names) - 1)]
            try:
                self._as_hinted(index, plain(value, name))
            except msgspec.ValidationError as error:
                raise TypeError(f"{self._called}: {name!r} isn't what the worker could read by its hint: {error}") from None
        return bound.args

    def given(self, context: JobContext) -> list[Any]:
        """Return what the handler is to be called with, but its dependencies.

        Raises Unfit if the job's arguments aren't its own.
        """
        try:
            converted = self.converted(context.job.args)
        except (TypeError, msgspec.ValidationError) as error:
            more = self._rest is None and len(context.job.args) > len(self._readers)
            raise Unfit(str(error), newer=more) from error
        return [context, *converted] if self.takes_context else converted

    def converted(self, sent: Sequence[Any]) -> list[Any]:
        """Return what a job brings, as the types that the handler's hints name.

        Raises TypeError if there are too few or too many, msgspec.ValidationError if one is of another type.
        """
        if len(sent) < self._required or (len(sent) > len(self._readers) and self._rest is None):
            most = "any number" if self._rest is not None else str(len(self._readers))
            raise TypeError(f"the handler takes {self._required} to {most} arguments, and the job has {len(sent)}")
        found: list[Any] = []
        for index, value in enumerate(sent):
            try:
                found.append(self._as_hinted(index, value))
            except msgspec.ValidationError as error:
                raise msgspec.ValidationError(f"args[{index}]: {error}") from None
        return found

    def misfit(self, result: Any) -> str | None:
        """Return how what the handler returned isn't what its hint says; None if it is, or if JSON can't hold it."""
        if self.returns is Any:
            return None
        try:
            self._reads_result(plain(result, "the result"))
        except msgspec.ValidationError as error:
            return str(error)
        except Exception:  # noqa: BLE001  # it is refused where it is written
            return None
        return None

    def _as_hinted(self, index: int, value: Any) -> Any:
        reads = self._readers[index] if index < len(self._readers) else self._rest
        assert reads is not None  # there are no more arguments than parameters
        return reads(value)
