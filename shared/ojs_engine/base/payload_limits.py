"""What a client may send, in one place; the manifest publishes it."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import asdict

from ojs_api import jobs, work, workflows
from ojs_engine.base.numbers import LONGEST_MS


class PayloadLimits(Struct, frozen=True, kw_only=True):
    """Sizes are bytes of UTF-8 JSON as sent, after decompression."""

    max_body_bytes: int = 4_194_304
    """Any request body; both as it travels and decompressed."""
    max_envelope_bytes: int = 1_048_576
    """One job as sent."""
    max_result_bytes: int = 1024 * 1024
    max_meta_bytes: int = 65_536
    max_metadata_bytes: int = 65_536
    """`options.metadata`, and the unknown members of an envelope together."""
    max_control_bytes: int = 262_144
    """The body of a request that has no jobs, arguments or results in it."""
    max_depth: int = 64
    """Arrays and objects inside one another, in any one member of a body."""

    max_type_bytes: int = 255
    max_queue_bytes: int = 255
    max_text_chars: int = 255
    """Worker ids, tags, labels, error codes and other short texts."""
    max_uri_chars: int = 2_048
    max_tags: int = 100
    max_extra_members: int = 100
    max_error_patterns: int = 100
    """Entries of `non_retryable_errors`."""
    max_label_bytes: int = 16_384
    """The labels of a worker."""

    max_queues: int = work.MOST_QUEUES
    """Queues in one fetch or worker record."""
    max_handlers: int = work.MOST_HANDLERS
    """Job types that a worker says it can run."""
    max_fetch_count: int = work.MOST_JOBS
    max_fetch_bytes: int = 8_388_608
    """The answer to one fetch, unless its only job is larger with what belongs to it."""
    max_active_jobs: int = work.MOST_JOBS
    """Jobs in one heartbeat."""
    max_result_ids: int = jobs.MOST_RESULTS
    """Ids in one request for results."""
    max_wait_ms: int = work.LONGEST_WAIT_MS
    default_wait_ms: int = work.STANDARD_WAIT_MS
    """How long an empty fetch waits when its body does not say."""
    max_result_wait_s: float = jobs.LONGEST_WAIT_S
    default_result_wait_s: float = jobs.STANDARD_WAIT_S

    max_batch_jobs: int = 10_000
    """Jobs in one batch push; a nats-server may be configured to take less."""
    max_bulk_jobs: int = 1_000
    """Jobs or ids in one bulk operation, and jobs that one request acts on by a filter."""
    max_idempotency_chars: int = 256

    max_workflow_jobs: int = workflows.MAX_JOBS
    """Jobs in one workflow, nested ones and callbacks included."""
    max_workflow_dependencies: int = 500_000
    """What the steps of one workflow wait for, each counted for every step that waits for it."""
    max_workflow_depth: int = 10
    """Workflows inside one another, the outermost being the first."""
    max_workflow_page: int = workflows.MAX_STEPS
    """Steps in one answer; larger workflows are read by pages."""
    max_parent_results_bytes: int = 4_194_304
    """What a job is given of earlier results; what is beyond comes as a reference."""

    max_schemas: int = 1_000
    """Schemas of arguments that are registered, each version counted."""
    max_schema_bytes: int = 65_536
    max_schema_nodes: int = 1_000
    """Schemas inside one document, each `$ref` counted as what it stands for."""
    max_schema_patterns: int = 50
    max_pattern_chars: int = 1_000

    max_attempts: int = 10_000
    max_duration_ms: int = LONGEST_MS
    """Ten years, for every duration; also keeps sums of them far from any overflow."""

    strict: bool = False
    """Whether members of a job's policies that OJS doesn't define are refused (strict mode); they have no effect."""

    def sizes(self) -> dict[str, float]:
        """Return the limits that are numbers, which answers publish."""
        return {name: size for name, size in asdict(self).items() if not isinstance(size, bool)}


DEFAULT_LIMITS = PayloadLimits()
