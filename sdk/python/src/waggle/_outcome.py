"""A result that many may wait for."""

from __future__ import annotations

import asyncio
from typing import Generic, TypeVar

from ._errors import CallTimeoutError, WaggleError

T = TypeVar("T")


class Outcome(Generic[T]):
    """A result that comes once. A failure that nobody waits for is silent."""

    def __init__(self) -> None:
        self._news: asyncio.Event = asyncio.Event()
        self._value: list[T] = []
        self._error: WaggleError | None = None

    @property
    def done(self) -> bool:
        """Whether it is there."""
        return self._news.is_set()

    def settle(self, value: T) -> None:
        """Set the result, unless one is there."""
        if not self.done:
            self._value = [value]
            self._news.set()

    def fail(self, error: WaggleError) -> None:
        """Set an error as the result, unless one is there."""
        if not self.done:
            self._error = error
            self._news.set()

    async def wait(self, timeout: float | None = None) -> T:
        """Wait for the result."""
        try:
            await asyncio.wait_for(self._news.wait(), timeout)
        except asyncio.TimeoutError:
            raise CallTimeoutError(f"no result within {timeout} s") from None
        if self._error is not None:
            raise self._error
        return self._value[0]
