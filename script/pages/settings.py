"""The reference of all settings, for the documentation.

`python -m script.pages.settings > docs/reference/settings.md` renews it.
"""

from __future__ import annotations

import sys

from ojs_command.services import SERVICES
from ojs_features.startup import OPTIONS as OF_FEATURES
from ojs_runtime.settings import CONFIG_ENV, DEFAULT_FILE, OPTIONS, Option


def reference() -> str:
    """The page in Markdown, made from the same table that the command line is made from."""
    rows = "\n".join(map(_row, (*OPTIONS, *OF_FEATURES)))
    return f"""\
# Settings

Every setting has one name with three spellings: a flag, a variable, and a key in a TOML file. Flags win over variables,
variables over the file, the file over the defaults. The file is the one named by `--config` or `{CONFIG_ENV}`, else
`{DEFAULT_FILE}` in the working folder if there is one. Whatever is wrong is reported in one message, and the process doesn't
start. `ojs-nats config` prints what counts and where each value was written.

| Flag | Variable | Key | Default | Commands | What it is |
|---|---|---|---|---|---|
{rows}

A list is written with commas, or as a list in TOML; yes and no as `true` and `false`. Variables that begin with `OJS_` and
aren't in this table are left alone (clients and platforms use the prefix, too), unless they look like a slip of one that is.

This page is made by `python -m script.pages.settings`.
"""


def _row(option: Option) -> str:
    commands = ["dev"] if "dev" in option.kinds else []
    commands += ["services"] if "services" in option.kinds else []
    commands += [service.name for service in SERVICES if option.is_of(service.kind)]
    default = f"`{option.default_text}`" if option.default_text else "none"
    listed = "all" if len(commands) == len(SERVICES) + 2 else ", ".join(commands)
    help_text = option.help.replace("|", "\\|")
    return f"| `{option.flag}` | `{option.env}` | `{option.name}` | {default} | {listed} | {help_text} |"


if __name__ == "__main__":
    sys.stdout.write(reference())
