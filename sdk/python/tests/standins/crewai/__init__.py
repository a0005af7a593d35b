"""Checkpoints of flows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class CheckpointConfig:
    location: str
    on_events: list[str]
    restore_from: str | None = None
