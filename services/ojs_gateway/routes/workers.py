"""The worker's side, and the workers as operators see them."""

from __future__ import annotations

from typing import Final

from ojs_api import work
from ojs_api import workers as contract
from ojs_engine.api.contract import part_of
from ojs_gateway.handlers.worker_admin import WorkerAdminHandlers
from ojs_gateway.handlers.workers import WorkerHandlers

WORKERS: Final = part_of(
    work.WORK,
    (
        WorkerHandlers,
        {
            work.FETCH: WorkerHandlers.fetch,
            work.ACK: WorkerHandlers.ack,
            work.ACK_MANY: WorkerHandlers.ack_many,
            work.NACK: WorkerHandlers.nack,
            work.HEARTBEAT: WorkerHandlers.heartbeat,
            work.REGISTER: WorkerHandlers.register,
            work.HEALTH: WorkerHandlers.health,
            work.DEREGISTER: WorkerHandlers.deregister,
        },
    ),
)
FLEET: Final = part_of(
    contract.FLEET,
    (
        WorkerAdminHandlers,
        {
            contract.ADMIN_LIST: WorkerAdminHandlers.admin_list,
            contract.LIST: WorkerAdminHandlers.list,
            contract.GET: WorkerAdminHandlers.read,
            contract.REMOVE: WorkerAdminHandlers.remove,
            contract.QUIET: WorkerAdminHandlers.quiet,
            contract.DIRECT: WorkerAdminHandlers.direct,
            contract.DIRECT_ALL: WorkerAdminHandlers.direct_all,
        },
    ),
)
