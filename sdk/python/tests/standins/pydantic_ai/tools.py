"""Deferred calls and their results."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class DeferredToolRequests:
    calls: list[Any] = field(default_factory=list[Any])
    approvals: list[Any] = field(default_factory=list[Any])


@dataclass
class DeferredToolResults:
    calls: dict[str, Any] = field(default_factory=dict[str, Any])
    approvals: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass
class ToolDenied:
    message: str = "The tool call was denied."
