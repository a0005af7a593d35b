"""Methods whose output people comment on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Method = Callable[..., Any]


def human_feedback(*, message: str, emit: list[str] | None = None) -> Callable[[Method], Method]:
    def mark(f: Method) -> Method:
        f.__dict__["feedback"] = (message, emit)
        return f

    return mark
