from __future__ import annotations

import sys

import pytest

from ojs_engine.base.problems import StartupProblem
from ojs_runtime import tracing
from ojs_runtime.settings import load

COLLECTOR = "http://collector.internal:4318"
STANDARD = {"OTEL_EXPORTER_OTLP_ENDPOINT": COLLECTOR}


@pytest.mark.parametrize(
    ("environ", "expected", "source"),
    [
        ({}, None, "default"),
        (STANDARD, COLLECTOR, "OTEL_EXPORTER_OTLP_ENDPOINT"),
        (STANDARD | {"OJS_OTLP_ENDPOINT": "off"}, None, "OJS_OTLP_ENDPOINT"),
        (STANDARD | {"OJS_OTLP_ENDPOINT": "https://mine:4318/otlp"}, "https://mine:4318/otlp", "OJS_OTLP_ENDPOINT"),
    ],
)
def test_the_standard_variable_counts_where_nothing_else_is_said(
    environ: dict[str, str], expected: str | None, source: str
) -> None:
    loaded = load({}, environ)
    assert (loaded.settings.otlp_endpoint, loaded.sources["otlp_endpoint"]) == (expected, source)


@pytest.mark.parametrize("wrong", ["collector:4317", "grpc://collector:4317", "http://", "yes"])
def test_what_is_no_url_is_refused(wrong: str) -> None:
    with pytest.raises(StartupProblem, match=r"OJS_OTLP_ENDPOINT: .* is not a URL like http://127\.0\.0\.1:4318, or off"):
        load({}, {"OJS_OTLP_ENDPOINT": wrong})


def test_without_opentelemetry_the_remedy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "ojs_runtime.spans", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(StartupProblem, match=r"install ojs-nats-server with its extra otel"):
        tracing.start(COLLECTOR, "gateway", "here")


def test_opentelemetry_is_not_even_imported_without_an_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ojs_runtime.spans", None)
    tracing.start(None, "gateway", "here")
