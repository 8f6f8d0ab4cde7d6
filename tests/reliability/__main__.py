from __future__ import annotations

import sys

from reliability.cli import main

sys.exit(main())
