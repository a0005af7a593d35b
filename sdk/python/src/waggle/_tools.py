"""Functions as tools."""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import functools
import inspect
import json
import threading
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from typing import Any, Generic, ParamSpec, TypeVar, overload

from ._schema import Schema, Signature

P = ParamSpec("P")
R = TypeVar("R")


class ToolCall:
    """A call of a tool. A parameter of this type gets it."""

    def __init__(
        self, id: str, metadata: Mapping[str, Any], notify: Callable[[str, str, Any], Awaitable[None]] | None = None
    ) -> None:
        self.id = id
        self.metadata = metadata
        self._notify = notify

    async def notify(self, message: str, *, type: str = "info", data: Any = None) -> None:
        """Tell the agent and its client how the call is: of the type progress, info, warning, error, debug, step or status."""
        if self._notify:
            await self._notify(message, type, data)


class Tool(Generic[P, R]):
    """A function with a JSON Schema of its parameters. It can be called as before."""

    def __init__(
        self,
        f: Callable[P, R],
        *,
        name: str | None = None,
        description: str | None = None,
        input_schema: Schema | None = None,
        output_schema: Schema | None = None,
        idempotent: bool = False,
    ) -> None:
        functools.update_wrapper(self, f)
        self.function = f
        self.name = name or f.__name__
        self.description = description if description is not None else inspect.getdoc(f) or ""
        self.signature = Signature(f, lambda _, hint: hint is ToolCall)
        self.input_schema: Schema = input_schema or self.signature.schema
        self.output_schema = output_schema
        self.idempotent = idempotent

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function."""
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"Tool({self.name!r})"

    async def run(self, arguments: Mapping[str, Any], call: ToolCall) -> Any:
        """Call the function with arguments of JSON, and return its result as JSON has it."""
        bound = self.signature.bind(arguments)
        if self.signature.context:
            bound[self.signature.context] = call
        return plain(await called(self.function, **bound))


@overload
def tool(f: Callable[P, R], /) -> Tool[P, R]: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    input_schema: Schema | None = None,
    output_schema: Schema | None = None,
    idempotent: bool = False,
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...
def tool(f: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a tool of a function, also an asynchronous one.

    Its name, its docstring and its type hints describe it; typing.Annotated[T, "text"] describes a parameter. What it
    raises is the failure of the call. idempotent: running it twice does no harm.
    """
    return Tool(f, **options) if f is not None else functools.partial(Tool, **options)


async def called(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function: in a thread of its own, if it is not asynchronous."""
    if inspect.iscoroutinefunction(f):
        return await f(*args, **kwargs)
    context = contextvars.copy_context()
    found = await asyncio.wrap_future(in_thread(functools.partial(context.run, f, *args, **kwargs)))
    return await found if inspect.isawaitable(found) else found


def in_thread(call: Callable[[], R]) -> Future[R]:
    """Make a call in a thread that does not keep the program alive, as those of a ThreadPoolExecutor do."""
    outcome: Future[R] = Future()

    def run() -> None:
        if not outcome.set_running_or_notify_cancel():
            return
        try:
            outcome.set_result(call())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=run, name="waggle", daemon=True).start()
    return outcome


def plain(value: Any) -> Any:
    """Return a result as JSON has it."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    dump: Any = getattr(value, "model_dump", None)
    return dump(mode="json") if dump else value


def text_of(value: Any) -> str:
    """Return a result as a text for the model."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
