"""What tests share: real NATS servers, whole systems as processes, and waiting for conditions."""

from __future__ import annotations
