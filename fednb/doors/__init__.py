"""All that a method may use: its doors, the two sides they are called on, messages, task, flow, precision."""

from fednb.doors import flow
from fednb.doors.messages import Message, add, alike, byte_counts, entries, part
from fednb.doors.method import Method, kept, overrides, owners
from fednb.doors.options import option
from fednb.doors.precision import DTYPES, autocast
from fednb.doors.running_statistics import frozen, measured
from fednb.doors.sides import AMethod, Batch, Client, Server
from fednb.doors.task import EVERY_TASK, TASKS, Task, classification_only

__all__ = [
    "AMethod",
    "DTYPES",
    "EVERY_TASK",
    "TASKS",
    "Batch",
    "Client",
    "Message",
    "Method",
    "Server",
    "Task",
    "add",
    "alike",
    "autocast",
    "byte_counts",
    "classification_only",
    "entries",
    "flow",
    "frozen",
    "kept",
    "measured",
    "option",
    "overrides",
    "owners",
    "part",
]
