"""All that a method may use: its doors, the two sides they are called on, messages, task, flow, precision."""

from fednb.methods import flow
from fednb.methods.hooks import Method, kept, overrides, owners
from fednb.methods.messages import Message, add, alike, byte_counts, entries, part
from fednb.methods.options import option
from fednb.methods.precision import DTYPES, autocast
from fednb.methods.running_statistics import frozen, measured
from fednb.methods.sides import AMethod, Batch, Client, Server
from fednb.methods.task import EVERY_TASK, TASKS, Task, classification_only

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
