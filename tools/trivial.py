"""Writes what a constant answer scores on each recorded federation: ``python tools/trivial.py``."""

from fednb.commands.trivial import add
from fednb.report.gates import TRIVIAL
from fednb.study import default_store

if __name__ == "__main__":
    for place in add(TRIVIAL, default_store().folders):
        print(place)
