"""`fednb list`: every notebook with its claim, what data it needs and what it costs; or every method."""

from fednb.commands import notebooks


def main(options) -> int:
    return _methods(options.only) if options.methods else _notebooks(options.only)


def _notebooks(only: str | None) -> int:
    for notebook in notebooks.select(only):
        about = notebook.about
        print(f"{notebook.name}  ({' '.join(filter(None, (about.get('paper'), about.get('result'))))})")
        print(f"    {about.get('claim', 'no claim stated')}")
        costs = ", ".join(f"{profile} {minutes} min" for profile, minutes in about.get("minutes", {}).items())
        print(f"    data: {about.get('data', 'none')}; cost: {costs or 'not stated'}")
    return 0


def _methods(only: str | None) -> int:
    from fednb.commands.methods import docstring, summaries

    chosen = summaries(only)
    for method in chosen:
        origin = f"; from {method.source}" if method.source else ""
        print(f"{method.name}  ({method.printed}; {method.paper}; {method.tasks}{origin})")
        print(f"    {method.line}\n    a round over FedAvg's: {method.cost}")
    if len(chosen) == 1:
        print(f"\n{docstring(chosen[0].room, chosen[0].name)}")
    return 0
