"""`ojs-nats` whose finished jobs and workflows leave after SECONDS: `python -m reliability.short_lived SECONDS COMMAND …`.

The product keeps every record for an hour at least (docs/retention.md), so what leaves could not be seen within an hour's soak.
Nothing else is changed.
"""

from __future__ import annotations

import sys

from ojs_command.main import main
from ojs_engine.domain.transitions import retention


def run(seconds: int, arguments: list[str]) -> int:
    """Run a command of `ojs-nats`; returns its exit code."""
    retention.TOMBSTONE_S = seconds  # type: ignore[misc]  # a constant of the product, and of nobody else
    retention.RETENTION_S.update(dict.fromkeys(retention.RETENTION_S, seconds))
    return main(arguments)


if __name__ == "__main__":
    sys.exit(run(int(sys.argv[1]), sys.argv[2:]))
