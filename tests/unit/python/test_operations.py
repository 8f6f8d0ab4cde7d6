"""What the client asks for is what the server offers, and the other way round."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Final

from ojs_features.all import FEATURES
from ojs_gateway.openapi.document import places
from ojs_gateway.routes import parts
from ojs_nats import _http, _operations, client, operations, worker
from ojs_nats._operations import AnyOperation
from ojs_nats.worker import _context
from support.tables import each

ROUTES = [route for part in parts(FEATURES) for route in part.routes]
OFFERED = {
    place.operation_id: (place.method, place.path)
    for part in parts(FEATURES)
    for route in part.routes
    for place in places(route)
}
FIRST_NAMES = {next(places(route)).operation_id for route in ROUTES if not route.test_only}
"""Of the operations that have several, for paths that mean the same."""
MODULES = [
    _operations,
    client,
    _context,
    _http,
    *(importlib.import_module(f"ojs_nats.operations.{found.name}") for found in pkgutil.iter_modules(operations.__path__)),
    *(importlib.import_module(f"ojs_nats.worker.{found.name}") for found in pkgutil.iter_modules(worker.__path__)),
]
ASKED = {value.name: value for module in MODULES for value in vars(module).values() if isinstance(value, AnyOperation)}

_ADMIN: Final = "the admin API's word for what another operation does"
_FILTERED: Final = "what the bulk operations do with a filter, page by page"
_PROBE: Final = "for those who watch processes, not for programs that use jobs"
_BROWSER: Final = "for browsers, which keep a cookie; programs show their key"
LEFT_OUT: Final = {
    "adminListQueues": _ADMIN,
    "adminListJobs": _ADMIN,
    "adminCancelJob": _ADMIN,
    "adminListWorkers": _ADMIN,
    "adminQuietWorker": _ADMIN,
    "adminListDeadLetter": _ADMIN,
    "adminPurgeQueue": _ADMIN,
    "adminGetSchemaVersion": _ADMIN,
    "adminGetSchema": _ADMIN,
    "adminDeleteDeadLetter": _ADMIN,
    "adminBulkRetry": _FILTERED,
    "adminBulkCancel": _FILTERED,
    "adminBulkDelete": _FILTERED,
    "adminBulkReprioritise": _FILTERED,
    "getLiveness": _PROBE,
    "getMetrics": _PROBE,
    "getSystemMetrics": "a few of the numbers of adminStats",
    "getJobTrace": "the timeline of adminGetJob in another shape",
    "getJobHistory": "listJobHistory in another shape",
    "resumeCheckpoint": "getJobCheckpoint in another shape",
    "clearDeadLetter": "purgeDeadLetter by another method",
    "listSubscriptionDeliveries": "listWebhookDeliveries of one subscription",
    "streamJobProgress": "the events of the job, which have its progress",
    "subscribeQueueEvents": "streamEvents of one queue",
    "websocketConnect": "streamEvents by another protocol",
    "streamStats": "adminStats, over and over",
    "ackJob": "ackJobs of one job",
    "createSession": _BROWSER,
    "getSession": _BROWSER,
    "deleteSession": _BROWSER,
    "getOpenApi": "what this client was made by",
}


@each("operation", list(ASKED.values()), ids=list(ASKED))
def test_the_server_has_the_operation_by_this_name_at_this_place(operation: AnyOperation) -> None:
    assert (operation.method, operation.place) == OFFERED[operation.name]


def test_what_the_server_offers_is_asked_for_or_left_out_with_a_reason() -> None:
    assert FIRST_NAMES - ASKED.keys() == LEFT_OUT.keys()
