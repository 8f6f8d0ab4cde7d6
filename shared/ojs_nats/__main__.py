"""`python -m ojs_nats`: the same as the `ojs-nats` command."""

from __future__ import annotations

import sys

from ojs_nats._command.entry import main

if __name__ == "__main__":
    sys.exit(main())
