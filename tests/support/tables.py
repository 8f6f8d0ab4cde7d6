"""Tables of cases in one test, for cases that take less than a test costs by itself (docs/adr/034)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any

import pytest
from _pytest.mark.structures import ParameterSet

Test = Callable[..., None]


def each(names: str | Sequence[str], cases: Iterable[Any], *, ids: Iterable[str] | None = None) -> Callable[[Test], Test]:
    """Run a test for every case of a table that is written as for `pytest.mark.parametrize`, and name those that fail.

    For plain functions: a fixture of the test is the same for all cases.
    """
    wanted = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    read = [ParameterSet.extract_from(case, force_tuple=len(wanted) == 1) for case in cases]
    told = list(ids) if ids is not None else [case.id for case in read]
    table = [(name, dict(zip(wanted, case.values, strict=True))) for name, case in zip(told, read, strict=True)]

    def made(test: Test) -> Test:
        @wraps(test)
        def all_cases(**fixtures: Any) -> None:
            failures: list[BaseException] = []
            for name, values in table:
                try:
                    test(**values, **fixtures)
                except (Exception, pytest.fail.Exception) as failure:  # noqa: BLE001, whatever fails is told at the end
                    failure.add_note(f"in the case {name or ', '.join(f'{key}={value!r}' for key, value in values.items())}")
                    failures.append(failure)
            if len(failures) == 1:
                raise failures[0]
            if failures:
                raise BaseExceptionGroup(f"{len(failures)} of {len(table)} cases fail", failures)

        given = inspect.signature(test)
        left = [parameter for parameter in given.parameters.values() if parameter.name not in wanted]
        all_cases.__signature__ = given.replace(parameters=left)  # type: ignore[attr-defined]
        return all_cases

    return made
