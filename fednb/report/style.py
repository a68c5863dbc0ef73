"""How a method looks in every figure: its colour, line and marker, readable in grey."""

from zlib import crc32

from fednb import registry
from fednb.report import labels

# Okabe and Ito's colour-blind palette without its yellow, which is too light for a line; then four of Tol's.
BLACK, SKY, ORANGE, BLUE, RED, GREEN, PINK, WINE, INDIGO, OLIVE, ROSE = PALETTE = (
    *("#000000", "#56B4E9", "#E69F00", "#0072B2", "#D55E00"),
    *("#009E73", "#CC79A7", "#882255", "#332288", "#999933", "#CC6677"),
)
OUTSIDE = "#8B4513"  # the colour of methods found outside: none of ours has it
FIRST = (  # ten to a line, for the ten colours after black: no paper's table has two methods of one column
    "fedavg",
    *("normalise", "fedmix", "fedrdn", "fedfa", "fraug", "distrans", "fedbn", "fedprox", "scaffold", "fedsam"),
    *("single", "all", "fedbabu", "partialfed", "fedavgm", "fedproto", "fedrdn_v", "mixup", "harmofl", "fednova"),
    *("fedfa_r", "advprop", "fedaws", "moon", "pfedhn", "fedrobust", "pfedhn_pc", "pfedme", "pfedavg", "faug"),
    *("fedreg", "embedding_noise", "manifold_mixup", "image_noise", "mixstyle", "moex", "fedfa_c", "fedfa_direct"),
    *("additional_embeddings", "own_statistics"),
)
LINES = ("-", ":", "-.", "--", (0, (5, 1, 1, 1, 1, 1)))
MARKERS = ("o", "s", "^", "*", "v", "P", "X", "<", "p")  # 45 methods are told apart in grey; a diamond is the paper's
CLASSES = (*MARKERS, "D")


def style(run: str) -> dict:
    """Colour, line style and marker of a run label such as ``"fedprox+fedrdn"``, the same in every figure.

    No two methods share colour and marker. The colour is that of the last method in the label, line and marker are
    those of all its methods together: with and without FedRDN differ in colour, FedProx + FedRDN and FedAvg + FedRDN in
    line and marker, and so do a method as printed and as released. Other options change nothing.
    """
    ours = (*FIRST, *sorted({*registry.builtin("algorithms"), *registry.builtin("augmentations")} - {*FIRST}))
    methods = [name for name, _ in labels.parts(run) if name != "fedavg"] or ["fedavg"]
    numbers = [ours.index(name) if name in ours else crc32(name.encode()) for name in methods]
    mark = sum(numbers) + 2 * run.count(labels.RELEASED)
    own = OUTSIDE if methods[-1] not in ours else colour(numbers[-1] - 1) if numbers[-1] else BLACK
    return {"color": own, "linestyle": LINES[mark % len(LINES)], "marker": MARKERS[mark % len(MARKERS)]}


def styles(runs: dict[str, str]) -> dict[str, dict]:
    """The looks of one figure's ``{row: run}``: ``style``, but rows of one method, with other options or in other
    settings, have shades of its colour from dark to light, and the lines and markers that follow."""
    from matplotlib.colors import to_hex, to_rgb

    looks, alike = {row: style(run) for row, run in runs.items()}, {}
    for row, run in runs.items():
        alike.setdefault(tuple(name for name, _ in labels.parts(run)), []).append(row)
    for rows in alike.values():
        for number, row in enumerate(rows) if len(rows) > 1 else ():
            look, share = looks[row], number / (len(rows) - 1)  # 0 of the darkest shade, 1 of the lightest
            shade = [(1 - share) * 0.45 * part + share * (0.7 * part + 0.3) for part in to_rgb(look["color"])]
            line = LINES[(LINES.index(look["linestyle"]) + number) % len(LINES)]
            marker = MARKERS[(MARKERS.index(look["marker"]) + number) % len(MARKERS)]
            looks[row] = {"color": to_hex(shade), "linestyle": line, "marker": marker}
    return looks


def colour(number: int) -> str:
    """Black is FedAvg's alone."""
    return PALETTE[1 + number % (len(PALETTE) - 1)]
