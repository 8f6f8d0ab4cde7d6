"""The places where backups are plugged into the server."""

from __future__ import annotations

from typing import Final

from ojs_features.backup.age import BackupAge, look
from ojs_features.backup.commands import COMMANDS
from ojs_features.plug import Check, Feature

BACKUP: Final = Feature(
    name="backup",
    gateway_loops=(BackupAge,),
    checks=(Check(name="backup", look=look),),
    backup_commands=COMMANDS,
)
