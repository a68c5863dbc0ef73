"""`fednb bench`: what a round costs, by ``tools/bench.py`` of the repository."""

from fednb.commands.notebooks import tool


def main(options) -> int:
    return tool("bench").main(options)


def measure(*given) -> None:
    """``run`` of ``tools/scale.py``, by a name that a process of any engine can import."""
    tool("scale").run(*given)
