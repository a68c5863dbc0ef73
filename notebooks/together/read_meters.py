"""Writes what the meters read on the shift dial, and on the federations that are held out.

    python notebooks/together/read_meters.py --data DATA

results/readings.csv has a row for each federation. Nothing is trained; SqueezeNet's weights are in weights/ of DATA.
"""

import argparse

from pandas import DataFrame

from dial import settings
from federations import bases
from fednb.datasets import load
from meters import METERS, meters
from predicting import READINGS

HEAD = "# What the meters of notebooks/together/meters.py read, written by read_meters.py there.\n"


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--data", help="the folder of the data sets and of weights/")
    root = words.parse_args().data
    federations = settings() | {name: recipe.dealt for name, recipe in bases("quick", 40).items()}
    rows = {}
    for name, options in federations.items():
        rows[name] = meters(load(**options, root=root), root)
        print(name, {meter: round(value, 3) for meter, value in rows[name].items()}, flush=True)
    table = DataFrame(rows).T[[*METERS]].rename_axis("federation")
    READINGS.write_text(HEAD + table.to_csv(float_format="%.6g"), encoding="utf-8")


if __name__ == "__main__":
    main()
