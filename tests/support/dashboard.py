"""The dashboard's libraries, which `script/setup` may not have been able to bring."""

from __future__ import annotations

import os

import pytest

from ojs_dashboard import files


def need_libraries() -> None:
    """Skip the test that calls this if they are missing; in CI, fail it."""
    missing = [name for name in files.NEEDED if not (files.LIBRARIES / name).is_file()]
    if not missing:
        return
    reason = f"the dashboard was NOT tested: its libraries {missing} are missing; script/dashboard_files brings them"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)
