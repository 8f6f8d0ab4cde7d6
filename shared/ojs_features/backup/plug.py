"""The places where backups are plugged into the server."""

from __future__ import annotations

from typing import Final

from ojs_engine.operations.finding import Check
from ojs_engine.plug import Feature
from ojs_features.backup.age import BackupAge, look
from ojs_features.backup.commands import COMMANDS

BACKUP: Final = Feature(
    name="backup",
    gateway_loops=(BackupAge,),
    checks=(Check(name="backup", look=look),),
    backup_commands=COMMANDS,
)
