"""Takes away what no notebook shows of recorded runs: an artefact beside records, such as their features.

    python tools/lighten.py features results/office_caltech10/fedavg_s0_b674ca.json ...

Every number of a record stays as it is; the record is sealed again without the artefact's checksum.
"""

import argparse
from pathlib import Path

from fednb.files import write_text
from fednb.records.record import SHARED, read, to_text


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("artefact")
    words.add_argument("records", type=Path, nargs="+")
    options = words.parse_args()
    freed = 0
    for path in options.records:
        record, beside = read(path), path.with_suffix(f".{options.artefact}.npz")
        del record.checksums[options.artefact]
        record.checksums.pop(options.artefact + SHARED, None)
        write_text(path, to_text(record))
        freed += beside.stat().st_size
        beside.unlink()
    print(f"{freed / 1e6:.1f} MB of {options.artefact} are gone")


if __name__ == "__main__":
    main()
