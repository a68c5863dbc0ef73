"""`fednb list`: every notebook with its claim, what data it needs and what it costs."""

from fednb.command import notebooks


def main(options) -> int:
    for book in notebooks.found(options.only):
        about = book.about
        print(f"{book.name}  ({' '.join(filter(None, (about.get('paper'), about.get('result'))))})")
        print(f"    {about.get('claim', 'no claim stated')}")
        costs = ", ".join(f"{profile} {minutes} min" for profile, minutes in about.get("minutes", {}).items())
        print(f"    data: {about.get('data', 'none')}; cost: {costs or 'not stated'}")
    return 0
