"""How a piece of work is carried out for each of many items; one file per way, found by its name.

Each file offers ``carry_out(work, items, tell, jobs) -> {item: None or what went wrong}``:

work   ``work(item, tell)`` does one item, leaves what it makes where others find it, and calls ``tell(what)``
       whenever there is something to tell. It goes through ``attempt``. All three can be pickled: work, item, what.
items  hashable, no two alike. One that fails, or is lost with the process or machine that was at it, stops no other.
tell   ``tell(item, what)`` is called where ``carry_out`` was called, in the order in which the item told it.
jobs   how many items may be at work at once.

The engines reach other machines, with a library of an extra's. They offer ``check()``, which is called first and raises
RunError where the library is not installed, or nothing is there that it could reach; and they take two things more:

device  ``"cuda"`` where each item needs a GPU; which one, the engine says.
folder  on a file system that all of the machines share.
"""

from fednb.errors import FednbError

ENGINES = ("ray", "slurm")


def attempt(work, item, tell) -> str | None:
    """Does one item; None or what went wrong."""
    try:
        work(item, tell)
    except FednbError as error:
        return str(error)
    except Exception as error:  # out of memory and the like: the other items go on
        return f"{type(error).__name__}: {error}"
    return None
