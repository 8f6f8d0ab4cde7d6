"""The fault suite: a client with its own ledger, faults in the system below it, a judgement of both (docs/reliability.md)."""

from __future__ import annotations
