"""All that a method may use: its hooks, the two sides they are called on, messages, task, flow, recipe.

The sides are ``fednb.loop.client.Client`` and ``fednb.loop.server.Server``, here for the types of hooks alone.
"""

from typing import TYPE_CHECKING, Any

from fednb.methods import flow
from fednb.methods.batch import DTYPES, Batch
from fednb.methods.hooks import Averaged, Method, kept, overrides, owners
from fednb.methods.messages import Message, add, alike, byte_counts, entries, part
from fednb.methods.options import option
from fednb.methods.running_statistics import batch_norms, frozen, measured, mixed_with
from fednb.methods.task import EVERY_TASK, TASKS, Task, classification_only
from fednb.recipe import Recipe

if TYPE_CHECKING:
    from fednb.loop.client import Client
    from fednb.loop.server import Server
else:
    Client = Server = Any
