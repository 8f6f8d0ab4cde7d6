"""Metrics as a Prometheus server would read them."""

from __future__ import annotations

import urllib.request
from collections.abc import Mapping
from typing import Final, NamedTuple

from prometheus_client.parser import text_string_to_metric_families

_IGNORED: Final = ("_bucket", "_sum")


class Scrape(NamedTuple):
    """Counts by metric and label values: `counts["ojs_job_enqueued_total", "default", "mail.send"]`, labels by their names."""

    counts: Mapping[tuple[str, ...], float]

    def __sub__(self, earlier: Scrape) -> dict[tuple[str, ...], float]:
        """What has changed since, and by how much."""
        names = {**self.counts, **earlier.counts}
        changes = {name: self.counts.get(name, 0) - earlier.counts.get(name, 0) for name in names}
        return {name: change for name, change in changes.items() if change}

    def of(self, metric: str) -> dict[tuple[str, ...], float]:
        """One metric's values by their labels."""
        return {name[1:]: value for name, value in self.counts.items() if name[0] == metric}


def scrape(*urls: str, path: str = "/metrics") -> Scrape:
    """All counters, gauges and counts of histograms of some processes, added up."""
    counts: dict[tuple[str, ...], float] = {}
    for url in urls:
        with urllib.request.urlopen(f"{url}{path}", timeout=60) as response:
            assert response.headers["Content-Type"] == "text/plain"
            text = response.read().decode()
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if not sample.name.endswith(_IGNORED):
                    key = (sample.name, *(value for _, value in sorted(sample.labels.items())))
                    counts[key] = counts.get(key, 0) + sample.value
    return Scrape(counts)
