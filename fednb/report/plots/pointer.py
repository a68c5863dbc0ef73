"""Curves that answer to the pointer: a Vega-Lite specification beside the still figure, drawn by JupyterLab and the
site; whatever cannot draw it shows the still figure."""

from fednb.report.plots._axes import titled
from fednb.report.style import LINES, style

MIME = "application/vnd.vegalite.v5+json"
DASHES = dict(zip(LINES, ([1, 0], [2, 2], [8, 2, 2, 2], [5, 2], [7, 2, 2, 2, 2, 2]), strict=True))  # pixels on and off
TEXT = {"labelColor": "#333", "titleColor": "#333", "labelFontSize": 11, "titleFontSize": 12}
TEXT |= {"titleFontWeight": "normal"}
CONFIG = {
    "axis": TEXT | {"gridColor": "#e5e5e5"},
    "legend": TEXT
    | {
        "orient": "bottom",
        "columns": 3,
        "labelLimit": 400,
        "titleLimit": 400,
        "symbolType": "stroke",
        "symbolSize": 400,
    },
    "title": {"anchor": "start", "fontWeight": "normal"},
    "view": {"stroke": None},
}


def with_pointer(figure, spec: dict):
    """The figure, shown by ``spec`` where that can be drawn."""
    figure._repr_mimebundle_ = lambda **_: {MIME: spec}  # Jupyter adds the still form
    return figure


def curves_spec(curves: dict, what: str, title: str, marked: str, printed: dict) -> dict:
    """Vega-Lite's specification of ``{label: (run, its round, seed and accuracy in rows)}``, in per cent.

    The pointer tells the nearest point's method, round and value, to two decimals, with the lowest and highest seed
    where there are several; a click in the legend fades all other methods, a second one takes it back.

    what: the measure, on the axis. marked: as ``fednb.report.wording.mark``. printed: the paper's average for each
        label, or None.
    """
    looks = [style(run) for run, _ in curves.values()]
    rows, several = _rows(curves)
    last = int(rows["round"].max())
    theirs = [{"method": label, "round": last, "value": own} for label, own in printed.items() if own is not None]
    told = "click a method to fade the others"
    told = f"◇ the paper; {told}" if theirs else told
    text, colour = titled(title, marked)
    y = {"field": "value", "type": "quantitative", "scale": {"zero": False}, "title": f"{what}, mean over clients"}

    def by_method(looks: list) -> dict:
        return {
            "field": "method",
            "scale": {"domain": list(curves), "range": looks},
            "legend": {"title": told, "symbolOpacity": 1},
        }

    def chosen(shown: float, faded: float) -> dict:
        return {"condition": {"param": "chosen", "value": shown}, "value": faded}

    band = {
        "mark": "area",
        "encoding": {"y": y | {"field": "lowest"}, "y2": {"field": "highest"}, "opacity": chosen(0.15, 0.02)},
    }
    line = {
        "mark": "line",
        "params": [
            {"name": "chosen", "select": {"type": "point", "fields": ["method"], "toggle": "true"}, "bind": "legend"}
        ],
        "encoding": {
            "y": y,
            "opacity": chosen(1, 0.12),
            "strokeDash": by_method([DASHES[look["linestyle"]] for look in looks]),
        },
    }
    nearest = {"type": "point", "on": "pointerover", "nearest": True, "clear": "pointerout"}
    points = {
        "mark": {"type": "point", "filled": True, "size": 60},
        "params": [{"name": "pointed", "select": nearest}],
        "transform": [{"filter": {"param": "chosen"}}],
        "encoding": {
            "y": y,
            "opacity": {"condition": {"param": "pointed", "empty": False, "value": 1}, "value": 0},
            "tooltip": _told(rows.columns[2:]),
        },
    }
    paper = {"field": "value", "type": "quantitative", "format": ".2f", "title": "the paper"}
    diamonds = {
        "data": {"values": theirs},
        "mark": {"type": "point", "shape": "diamond", "fill": "white", "size": 70},
        "encoding": {"y": y, "opacity": chosen(1, 0.12), "tooltip": [{"field": "method"}, paper]},
    }
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": {"text": text.split("\n"), "color": colour},
        "width": 620,
        "height": 320,
        "background": "white",
        "data": {
            "values": rows.to_csv(index=False, lineterminator="\n"),
            "format": {"type": "csv", "parse": dict.fromkeys(rows.columns[1:], "number")},
        },
        "encoding": {
            "x": {
                "field": "round",
                "type": "quantitative",
                "scale": {"nice": False, "domain": [1, last]},
                "axis": {"tickMinStep": 1, "grid": False},
            },
            "color": by_method([look["color"] for look in looks]),
        },
        "layer": [*([band] if several else []), line, points, *([diamonds] if theirs else [])],
        "config": CONFIG,
    }


def _rows(curves: dict):
    """method, round, value and, where some have several seeds, lowest and highest; and whether they have."""
    import pandas

    several = any(by_seed["seed"].nunique() > 1 for _, by_seed in curves.values())
    numbers = {"value": "mean"} | ({"lowest": "min", "highest": "max"} if several else {})
    parts = [
        by_seed.groupby("round")["accuracy"].agg(**numbers).reset_index().assign(method=label)
        for label, (_, by_seed) in curves.items()
    ]
    return pandas.concat(parts)[["method", "round", *numbers]].round(2), several


def _told(numbers) -> dict:
    """What stands beside the nearest point. Vega-Lite's own lists of fields lose a name in the cells around points."""
    told = {"method": "p.method", "round": "p.round"} | {name: f"format(p.{name}, '.2f')" for name in numbers}
    listed = ", ".join(f"{name}: {value}" for name, value in told.items())
    return {"value": {"expr": f"{{{listed}}}".replace("p.", "(datum.datum || datum).")}}
