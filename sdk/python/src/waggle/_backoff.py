"""The pauses between attempts."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

LONGEST = 300.0
"""Bounds the pause that a server can ask for, in seconds."""


@dataclass(frozen=True)
class Backoff:
    """Bounds of the pauses between attempts, in seconds."""

    first: float = 0.1
    """The first pause; it doubles with each failure."""
    longest: float = 5.0


class Pauses:
    """The pauses of one chain of attempts. Chance takes up to half of each, so that clients do not return all at once."""

    def __init__(self, bounds: Backoff, chance: Callable[[], float] = random.random) -> None:
        self._bounds = bounds
        self._chance = chance
        self._next = bounds.first

    def reset(self) -> None:
        """Return to the shortest pause."""
        self._next = self._bounds.first

    def pause(self, *, retry_after: float = 0.0, goodbye: bool = False) -> float:
        """Return how long to wait now. Goodbye: the server sent the client to another gateway."""
        is_first = self._next == self._bounds.first
        pause = self._next - self._chance() * self._next / 2
        self._next = min(2 * self._next, self._bounds.longest)
        if goodbye and is_first:
            return self._chance() * self._bounds.first
        return pause + retry_after


def retry_after(value: str | None, now: float | None = None) -> float:
    """Read the header Retry-After, seconds or a date, in seconds; 0 if it names no pause."""
    if not value:
        return 0.0
    value = value.strip()
    if value.isascii() and value.isdigit():
        seconds = float(value)
    else:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - (time.time() if now is None else now)
        except (TypeError, ValueError, OverflowError):
            return 0.0
    return min(max(seconds, 0.0), LONGEST)
