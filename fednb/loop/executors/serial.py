"""One item after the other, in this process."""

from functools import partial

from fednb.loop.executors import attempt


def carry_out(work, items: list, tell, jobs: int = 1) -> dict:
    """As every executor does; ``jobs`` is one, whatever is asked for."""
    return {item: attempt(work, item, partial(tell, item)) for item in items}
