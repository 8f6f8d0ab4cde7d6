"""The reference of all metrics, for the documentation.

`python -m script.pages.metrics > docs/metrics.md` renews it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from ojs_engine.telemetry import metrics
from ojs_features.all import FEATURES


def reference() -> str:
    """The page in Markdown, made from the metrics themselves."""
    of_features = [family for feature in FEATURES for family in feature.metrics]
    return f"""\
# Metrics

Every process serves `/metrics` in Prometheus' text format: a gateway on its own port, every other service on its
`--health-port`. `deploy/monitoring` has a file for Prometheus that scrapes them, alerts, and a
dashboard for Grafana ([monitoring](../deploy/README.md#monitoring)).
Those ports ask for no key; a gateway's own does, once there are keys. Of gateways that share a port
(`--processes`) any may answer there: scrape each on its own, at `--health-port` and the ports after it.

Each process counts what it did itself since it started: the gateway a push, the reaper a job whose time was up. So a figure of
the system is a sum over all processes, and rates survive restarts:

```promql
sum by (queue) (rate(ojs_job_completed_total[5m]))                                       # completed jobs a second
sum by (queue) (rate(ojs_job_failed_total[5m])) > 0                                      # jobs that ended badly
max by (queue) (ojs_queue_depth{{state="available"}})                                      # the backlog
histogram_quantile(0.99, sum by (le, queue) (rate(ojs_job_queue_time_seconds_bucket[5m])))  # how long jobs wait
```

Metrics of jobs have the names of ojs-observability; those of ojs-events (`ojs_jobs_…`) aren't served
([adr/018](adr/018-statistics-over-time.md)). No metric has job ids, arguments or messages in its labels. The first
{metrics.MAX_SERIES} pairs of queue and job type that a process meets have series of their own; later types count as
`{metrics.OTHER}` in their queue, and later queues, beyond a hundred, as `{metrics.OTHER}`, too.

## All processes

{_table(listed for listed in metrics.FAMILIES if listed.family not in of_features)}

Besides, `ojs_build_info` says which service and version a process is and in which namespace, and `process_…` what it
uses of CPU, memory and file descriptors.

## Features

A process that does the work of a feature counts these. Gateways and projectors serve them, too.

{_table(listed for listed in metrics.FAMILIES if listed.family in of_features)}

## Gateways

{_table(metrics.OF_GATEWAY)}

## Projectors

Every projector has the whole index, so several say the same of the queues: take the `max`, not the `sum`. While an index is
built anew (`ojs_projector_progress_ratio` below 1) its numbers are too low.

{_table(metrics.OF_PROJECTOR)}

## As JSON

`GET /ojs/v1/metrics` on a gateway answers with a few numbers of the whole system, for `ojs metrics` of the official command
line; `?format=prometheus` is the gateway's `/metrics`. Its totals count the jobs that are stored: finished ones leave after
their retention. `jobs_failed_total` are discarded jobs, `avg_latency_ms` is the time from available to started over the last
hour, `throughput_per_second` completed jobs over the last five minutes, `queues_active` counts queues with work,
`workers_active` workers heard of in the last 30 seconds.

This page is made by `python -m script.pages.metrics`.
"""


def _table(families: Iterable[metrics.Listed]) -> str:
    return "\n".join(["| Name | Type | Labels | What it is |", "|---|---|---|---|", *map(_row, families)])


def _row(listed: metrics.Listed) -> str:
    described = next(iter(listed.family.describe()))
    name = described.name + ("_total" if described.type == "counter" else "")
    labels = ", ".join(f"`{label}`" for label in listed.labels)
    return f"| `{name}` | {described.type} | {labels} | {described.documentation} |"


if __name__ == "__main__":
    sys.stdout.write(reference())
