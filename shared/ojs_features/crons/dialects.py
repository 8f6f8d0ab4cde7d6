"""Cron entries for official clients."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct

from ojs_api.crons import Cron, CronHistory, CronPage, CronRun, DeletedCron, OneCron, TriggeredCron
from ojs_engine.wire.dialects.shaping import Shapes
from ojs_engine.wire.members import bare, members, written


class _Options(Struct):
    queue: str = "default"


_decode_options: Final = msgspec.json.Decoder(_Options).decode


def _for_sdk(entry: Cron) -> dict[str, Any]:
    """The binding's names; the job's members stand beside the others."""
    cron = bare(entry)
    view = {"cron": cron.expression, **members(cron.job_template), "status": "active" if cron.enabled else "disabled"}
    return view | members(entry)


def _for_ui(entry: Cron) -> dict[str, Any]:
    cron = bare(entry)
    queue = _decode_options(written(cron.job_template.options)).queue
    view = {"id": cron.name, "schedule": cron.expression, **members(cron.job_template), "queue": queue}
    return view | members(entry)


def _one_for_sdk(answer: OneCron) -> dict[str, Any]:
    cron = _for_sdk(answer.cron)
    return members(answer) | {"cron": cron, "cron_job": cron}


def _one_for_ui(answer: OneCron | DeletedCron) -> dict[str, Any]:
    """The entry's members stand beside `cron`, too, as for the command line: neither unwraps."""
    return _for_ui(answer.cron) | members(answer)


def _one_for_cli(answer: OneCron | DeletedCron | TriggeredCron) -> dict[str, Any]:
    return members(answer.cron) | members(answer)


def _page_for_sdk(answer: CronPage) -> dict[str, Any]:
    crons = [_for_sdk(cron) for cron in answer.crons]
    return members(answer) | {"crons": crons, "cron_jobs": crons}


def _page_for_ui(answer: CronPage) -> dict[str, Any]:
    return members(answer) | {"items": [_for_ui(cron) for cron in answer.crons]}


def _page_for_cli(answer: CronPage) -> dict[str, Any]:
    return members(answer) | {"cron_jobs": answer.crons}


def _history_for_cli(answer: CronHistory) -> dict[str, Any]:
    return members(answer) | {"executions": [_with_state(execution) for execution in answer.executions]}


def _with_state(execution: CronRun) -> dict[str, Any]:
    state = execution.status if execution.job_state is None else execution.job_state
    return members(execution) | {"state": state}


SHAPES: Final[Shapes] = {
    OneCron: {"sdk": _one_for_sdk, "cli": _one_for_cli, "ui": _one_for_ui},
    DeletedCron: {"cli": _one_for_cli, "ui": _one_for_ui},
    TriggeredCron: {"cli": _one_for_cli},
    CronPage: {"sdk": _page_for_sdk, "cli": _page_for_cli, "ui": _page_for_ui},
    CronHistory: {"cli": _history_for_cli},
}
