"""`fednb bench`: what a round costs, by ``tools/bench.py`` of the repository."""

from fednb.commands.notebooks import tool


def main(options) -> int:
    return tool("bench").main(options)
