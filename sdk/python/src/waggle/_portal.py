"""An event loop in a thread of its own, for programs without asyncio."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from concurrent.futures import CancelledError
from typing import Any, TypeVar

from ._errors import ClosedError

T = TypeVar("T")


class Portal:
    """An event loop in a thread of its own, and the way into it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="waggle", daemon=True)
        self._thread.start()

    @property
    def closed(self) -> bool:
        """Whether it has ended."""
        return self._loop.is_closed()

    def run(self, work: Awaitable[T]) -> T:
        """Wait for the outcome of a coroutine. An interrupt of the program cancels it."""
        if threading.current_thread() is self._thread:
            _drop(work)
            raise RuntimeError("a listener runs in the thread of the client: it cannot wait for a call")
        if self._loop.is_closed():
            _drop(work)
            raise ClosedError("the program closed the client")
        future = asyncio.run_coroutine_threadsafe(_awaited(work), self._loop)
        try:
            return future.result()
        except CancelledError:
            raise ClosedError("the program closed the client") from None
        except BaseException:
            future.cancel()
            raise

    def do(self, f: Callable[[], T]) -> T:
        """Call a function in the loop."""

        async def call() -> T:
            return f()

        return self.run(call())

    def iterate(self, items: AsyncGenerator[T, None]) -> Generator[T, None, None]:
        """Yield the items of an asynchronous generator, each as it is asked for."""
        try:
            while True:
                try:
                    item = self.run(items.__anext__())
                except StopAsyncIteration:
                    return
                yield item
        finally:
            if not self._loop.is_closed():
                self.run(items.aclose())

    def close(self) -> None:
        """End the loop and its thread."""
        if self._loop.is_closed():
            return
        self.run(self._loop.shutdown_asyncgens())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _awaited(work: Awaitable[T]) -> T:
    return await work


def _drop(work: Awaitable[Any]) -> None:
    if isinstance(work, Coroutine):
        work.close()
