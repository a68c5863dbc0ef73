"""`fednb list`: every notebook with its claim, what data it needs and what it costs; or every method."""

from fednb.commands import methods, notebooks


def main(options) -> int:
    return _methods(options.only) if options.methods else _notebooks(options.only)


def _notebooks(only: str | None) -> int:
    for book in notebooks.found(only):
        about = book.about
        print(f"{book.name}  ({' '.join(filter(None, (about.get('paper'), about.get('result'))))})")
        print(f"    {about.get('claim', 'no claim stated')}")
        costs = ", ".join(f"{profile} {minutes} min" for profile, minutes in about.get("minutes", {}).items())
        print(f"    data: {about.get('data', 'none')}; cost: {costs or 'not stated'}")
    return 0


def _methods(only: str | None) -> int:
    for method in methods.told(only):
        origin = f"; from {method.source}" if method.source else ""
        print(f"{method.name}  ({method.printed}; {method.paper}; {method.tasks}{origin})")
        sends, keeps = (told or "its docstring does not say" for told in (method.sends, method.keeps))
        print(f"    changes: {method.changes}\n    sends: {sends}\n    keeps: {keeps}")
        print(f"    a round over FedAvg's: {method.cost}")
    return 0
