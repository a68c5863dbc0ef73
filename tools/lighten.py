"""Takes away what no notebook shows of recorded runs: an artefact beside records, such as the features of rivals.

    python tools/lighten.py features results/office_caltech10 --keep fedavg fedavg+fedrdn

Every number of a record stays as it is; the record is sealed again without the artefact's checksum.
"""

import argparse
from pathlib import Path

from fednb.files import write_text
from fednb.recipe import Recipe
from fednb.records.record import read, to_text


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("artefact")
    words.add_argument("folder", type=Path)
    words.add_argument("--keep", nargs="*", default=[], metavar="RUN", help="labels of runs that keep it")
    options = words.parse_args()
    freed = 0
    for path in sorted(options.folder.glob("*.json")):
        record = read(path)
        beside = path.with_suffix(f".{options.artefact}.npz")
        if beside.exists() and Recipe(**record.recipe).label not in options.keep:
            del record.checksums[options.artefact]
            write_text(path, to_text(record))
            freed += beside.stat().st_size
            beside.unlink()
    print(f"{freed / 1e6:.1f} MB of {options.artefact} in {options.folder} are gone")


if __name__ == "__main__":
    main()
