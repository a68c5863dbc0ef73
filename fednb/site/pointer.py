"""Curves that answer to the pointer, on a page of the site: their specification, and the JavaScript that draws it."""

import importlib.util
import json
from functools import cache

MIME = "application/vnd.vegalite.v5+json"

SCRIPTS = "".join(f'<script defer src="../../_static/{name}.js"></script>' for name in ("vega", "curves"))


@cache
def library() -> str:
    """Vega, Vega-Lite and vega-embed as one script; empty without vl-convert-python: figures stay still."""
    if importlib.util.find_spec("vl_convert") is None:
        return ""
    from vl_convert import javascript_bundle

    return f"(() => {{{javascript_bundle()}\n}})();"  # its names are not the page's


def drawn(cell: dict) -> str:
    """HTML from which ``SCRIPTS`` draw a cell's curves in the place of its still figures; empty where it has none."""
    figures = [output["data"] for output in cell["outputs"] if "image/png" in output.get("data", {})]
    specs = {place: data[MIME] for place, data in enumerate(figures) if MIME in data}
    if not specs or not library():
        return ""
    told = json.dumps(specs).replace("<", r"\u003c")
    return f'<script type="application/json" class="curves">{told}</script>'
