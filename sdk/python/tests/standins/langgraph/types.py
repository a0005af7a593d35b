"""Commands, interrupts and snapshots."""

from __future__ import annotations

import contextvars
from dataclasses import dataclass
from typing import Any, NamedTuple


@dataclass(frozen=True)
class Command:
    resume: Any = None


@dataclass(frozen=True)
class Interrupt:
    value: Any
    id: str


class StateSnapshot(NamedTuple):
    values: dict[str, Any]
    next: tuple[str, ...]
    created_at: str | None
    interrupts: tuple[Interrupt, ...]


class GraphInterrupt(Exception):  # noqa: N818
    """Raised by interrupt() without an answer."""


answers: contextvars.ContextVar[list[Any]] = contextvars.ContextVar("answers")


def interrupt(value: Any) -> Any:
    """Return the next answer of this node, or stop the node with a question."""
    left = answers.get()
    if not left:
        raise GraphInterrupt(value)
    return left.pop(0)
