"""`fednb check`: holds one method to the conformance tests that all of ours pass, by ``tools/check.py``."""

from fednb.commands.notebooks import tool


def main(options) -> int:
    return tool("check").main(options)
