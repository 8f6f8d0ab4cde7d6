"""The second push of the same report is the first one."""

from __future__ import annotations

from jobs import build_report

first = build_report.options(delay="1m").push_sync("2026-10")
second = build_report.options(delay="1m").push_sync("2026-10")
print(first.id == second.id)
print(first.cancel().state)
