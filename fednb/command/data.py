"""`fednb data`: what is on disk, what is expected, where it comes from, and every damaged file."""

from fednb.data import check


def main(options) -> int:
    found = check(options.data, options.check)
    print(found)
    return 1 if found.damaged or found.differs else 0
