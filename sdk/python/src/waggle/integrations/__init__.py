"""Agents of other frameworks, and any async function, as agents of the swarm whose work survives their process."""

from ._durable import DurableTask, durable
from ._report import Report, UnknownOutcomeError
from ._store import Folder, Store

__all__ = ["DurableTask", "Folder", "Report", "Store", "UnknownOutcomeError", "durable"]
