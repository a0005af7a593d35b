"""Settings of all flows."""

from __future__ import annotations

from typing import Any


class FlowConfig:
    hitl_provider: Any = None


flow_config = FlowConfig()
