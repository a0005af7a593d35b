"""Waggle for Python programs: sessions, runs, plans, questions, teams, tasks, agents and tools."""

from ._backoff import Backoff
from ._client import Waggle
from ._errors import CallTimeoutError, ClosedError, GapError, UnreachableError, WaggleError
from ._live import TopicMessage
from ._logs import Log
from ._questions import Question, Reply
from ._run import Answer, Delta, Run
from ._session import FilePart, SendOptions, Session
from ._tasks import Task, TaskResult
from ._teams import Team
from ._tools import Tool, ToolCall, tool
from ._watched import ConnectionState

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "Backoff",
    "CallTimeoutError",
    "ClosedError",
    "ConnectionState",
    "Delta",
    "FilePart",
    "GapError",
    "Log",
    "Question",
    "Reply",
    "Run",
    "SendOptions",
    "Session",
    "Task",
    "TaskResult",
    "Team",
    "Tool",
    "ToolCall",
    "TopicMessage",
    "UnreachableError",
    "Waggle",
    "WaggleError",
    "__version__",
    "tool",
]
