"""Findings and reasons (docs/admin.md)."""

from __future__ import annotations

from typing import Final

from ojs_api import findings as contract
from ojs_engine.api.contract import part_of
from ojs_features.findings.handlers import FindingHandlers, WhyHandlers

PART: Final = part_of(
    contract.FINDINGS,
    (FindingHandlers, {contract.LIST: FindingHandlers.read}),
    (WhyHandlers, {contract.EXPLAIN: WhyHandlers.read}),
)
