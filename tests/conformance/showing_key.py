"""Runs a program of Python whose requests by urllib show a key: `showing_key.py PROGRAM [ARGUMENT ...]`.

The key is in OJS_AUTH_TOKEN. It stands in for those who send no header of their own.
"""

from __future__ import annotations

import os
import runpy
import sys
import urllib.request
from pathlib import Path


def main() -> None:
    opener = urllib.request.build_opener()
    opener.addheaders.append(("Authorization", f"Bearer {os.environ['OJS_AUTH_TOKEN']}"))
    urllib.request.install_opener(opener)
    del sys.argv[0]
    sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
