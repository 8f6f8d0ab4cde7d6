"""Queues: create, read, configure, pause, resume, purge, delete."""

from __future__ import annotations

import structlog

from ojs_engine.api.call import Call, Response
from ojs_engine.base.errors import OjsError
from ojs_engine.base.fields import queue_name
from ojs_engine.domain import transitions
from ojs_engine.domain.queues import config
from ojs_engine.domain.queues import record as queue_record
from ojs_engine.domain.queues.config import DEFAULT_QUEUE, NOT_SET, Patch, QueueConfig
from ojs_engine.domain.queues.record import QueueRecord
from ojs_engine.wire.queues.requests import parse_config, parse_create, parse_deletion, parse_purge, parse_queue_limit
from ojs_gateway.answers.queues import configured_queue, deleted_queue, purged_queue, queue_detail, switched_queue
from ojs_gateway.context import Context
from ojs_gateway.queue_removal import QueueRemoval, tell_of_queue
from ojs_index.known_queues import known_queue

log = structlog.get_logger(__name__)


class QueueHandlers:
    """Handlers under /queues and /admin/queues.

    Any name stands for a queue; `_default` for the policy of all of them.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._removal = QueueRemoval(context.store, context.queries)
        self._store = context.store
        self._limits = context.limits
        self._not_honoured = config.not_honoured({feature.name for feature in context.features})

    # Configuration

    async def create(self, call: Call) -> Response:
        """POST /queues: 201, or 409 if it was created before."""
        name, patch = await call.read(parse_create, self._limits)
        call.require_queue(name)
        self._check_honoured(patch)
        record = await self._store.queues.change(
            name, lambda old, moment: queue_record.created(old, name, config.patched(NOT_SET, patch), moment)
        )
        await tell_of_queue(self._store, "queue.created", name)
        answer = configured_queue(name, record, await self._common(name))
        return Response(201, answer, (("Location", f"/ojs/v1/queues/{name}"),))

    async def read(self, call: Call) -> Response:
        """GET /queues/{name}: settings and numbers; 404 if nobody ever configured it or pushed to it."""
        name = queue_name(call.parameters[0], "queue", self._limits)
        record, queue = await known_queue(self._store, self._context.queries, name)
        return Response(200, queue_detail(queue, record, await self._common(name), self._store.clock.now()))

    async def read_config(self, call: Call) -> Response:
        """GET /queues/{name}/config: what is set for the queue or below it."""
        name = self._name(call)
        record = await self._store.queues.get(name)
        return Response(200, configured_queue(name, record, await self._common(name)))

    async def configure(self, call: Call) -> Response:
        """PUT /queues/{name}/config: sets what is sent, takes back what is null.

        Jobs that are queued keep what they have.
        """
        name = self._name(call)
        return await self._configure(name, await call.read(parse_config, self._limits))

    def _check_honoured(self, patch: Patch) -> None:
        """Raise OjsError unsupported for a setting of a feature that was left out."""
        for setting in self._not_honoured:
            if patch.get(setting.attribute) is not None:
                message = f"{setting.name} is not supported: this server runs without the feature; leave it out"
                raise OjsError("unsupported", message, details={"field": setting.name})

    async def _configure(self, name: str, patch: Patch) -> Response:
        self._check_honoured(patch)

        def decide(old: QueueRecord | None, moment: transitions.Moment) -> QueueRecord:
            standing = old.config if old is not None and old.state != "deleted" else NOT_SET
            return queue_record.configured(old, name, config.patched(standing, patch), moment)

        record = await self._store.queues.change(name, decide)
        await tell_of_queue(self._store, "queue.config_updated", name)
        return Response(200, configured_queue(name, record, await self._common(name)))

    async def limit(self, call: Call) -> Response:
        """PUT /admin/queues/{name}/rate-limit `{concurrency, rate: {limit, period}}` (ojs-rate-limiting §7.2)."""
        name = self._name(call)
        patch = await call.read(parse_queue_limit, self._limits)
        return await self._configure(name, patch)

    # Pause

    async def pause(self, call: Call) -> Response:
        """POST /queues/{name}/pause: once this is answered, nothing is fetched from it, through whichever gateway."""
        name = queue_name(call.parameters[0], "queue", self._limits)
        record = await self._store.queues.pause(name)
        await tell_of_queue(self._store, "queue.paused", name)
        return Response(200, switched_queue(name, record))

    async def resume(self, call: Call) -> Response:
        """POST /queues/{name}/resume: ends a pause, and a drain."""
        name = queue_name(call.parameters[0], "queue", self._limits)
        record = await self._store.queues.resume(name)
        await tell_of_queue(self._store, "queue.resumed", name)
        return Response(200, switched_queue(name, record))

    # Clearing

    async def purge(self, call: Call) -> Response:
        """POST /queues/{name}/purge: removes the jobs that wait, or those in the `states` that the body names."""
        return await self._purge(call, confirmed=True)

    async def purge_states(self, call: Call) -> Response:
        """DELETE /admin/queues/{name}/jobs `{states, older_than, confirm: true}` (ojs-admin-api §6.5)."""
        return await self._purge(call, confirmed=False)

    async def _purge(self, call: Call, *, confirmed: bool) -> Response:
        asked = await call.parsed(
            await call.body(self._limits.max_control_bytes),
            parse_purge,
            self._store.clock.now(),
            self._limits,
            confirmed=confirmed,
        )
        name = queue_name(call.parameters[0], "queue", self._limits)
        return Response(200, purged_queue(name, asked, await self._removal.purge(name, asked)))

    async def delete(self, call: Call) -> Response:
        """DELETE /queues/{name}: 200 when it is gone, 202 while jobs of it are left, 409 if they are not to be touched.

        The queue drains meanwhile: it takes no jobs. A request that is answered 202 goes on when it is repeated.
        """
        name = queue_name(call.parameters[0], "queue", self._limits)
        asked = await call.read(parse_deletion, call.queries, name, self._limits)
        if asked.target_queue is not None:
            call.require_queue(asked.target_queue)
        emptied = await self._removal.delete(name, asked)
        return Response(202 if emptied.remaining else 200, deleted_queue(name, asked, emptied))

    # Shared

    def _name(self, call: Call) -> str:
        """The queue of the path, or `_default`."""
        name = call.parameters[0]
        return name if name == DEFAULT_QUEUE else queue_name(name, "queue", self._limits)

    async def _common(self, name: str) -> QueueConfig:
        """What lies below a queue's own settings."""
        record = await self._store.queues.get(DEFAULT_QUEUE) if name != DEFAULT_QUEUE else None
        return NOT_SET if record is None else record.config
