"""The list of the features that every process of the server is composed of."""

from __future__ import annotations

from typing import Final

from ojs_engine.store.store import StoreFeatures
from ojs_features.access.plug import ACCESS
from ojs_features.audit.plug import AUDIT
from ojs_features.backup.plug import BACKUP
from ojs_features.bulk.plug import BULK
from ojs_features.checkpoints.plug import CHECKPOINTS
from ojs_features.crons.plug import CRONS
from ojs_features.dead_letters.plug import DEAD_LETTERS
from ojs_features.events.plug import EVENTS
from ojs_features.findings.plug import FINDINGS
from ojs_features.history.plug import HISTORY
from ojs_features.limits.plug import LIMITS
from ojs_features.maintenance.plug import MAINTENANCE
from ojs_features.plug import Feature, only
from ojs_features.pools.plug import POOLS
from ojs_features.progress.plug import PROGRESS
from ojs_features.schemas.plug import SCHEMAS
from ojs_features.statistics.plug import STATISTICS
from ojs_features.unique.plug import UNIQUE
from ojs_features.webhooks.plug import WEBHOOKS
from ojs_features.workflows.plug import WORKFLOWS

FEATURES: Final[tuple[Feature, ...]] = (
    POOLS,
    PROGRESS,
    CHECKPOINTS,
    HISTORY,
    EVENTS,
    FINDINGS,
    BULK,
    DEAD_LETTERS,
    STATISTICS,
    SCHEMAS,
    CRONS,
    UNIQUE,
    LIMITS,
    WORKFLOWS,
    WEBHOOKS,
    ACCESS,
    AUDIT,
    BACKUP,
    MAINTENANCE,
)
FOLLOWED: Final = tuple(followed for feature in FEATURES for followed in feature.followed)
BACKUPS: Final = tuple(feature.backup for feature in FEATURES)
BACKUP_COMMANDS: Final = only(feature.backup_commands for feature in FEATURES)
GRANTS: Final = tuple(feature.grants for feature in FEATURES)
STORE_FEATURES: Final = StoreFeatures(
    gates=only(feature.gates for feature in FEATURES),
    locks=only(feature.locks for feature in FEATURES),
    order=only(feature.order for feature in FEATURES),
    ends={what: ended for feature in FEATURES for what, ended in feature.ends.items()},
)
ON_NATS: Final = {command: make for feature in FEATURES for command, make in feature.on_nats.items()}
