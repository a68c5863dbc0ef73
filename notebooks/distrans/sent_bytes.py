"""What DisTrans' second channel and its offset add to the bytes of a network (Table 7)."""

from pandas import DataFrame

from fednb import models, papers
from fednb.methods.augmentations.distrans import DisTrans

FEATURES = {"LeNet": 100, "AlexNet": 1000, "ResNet18": 512, "ResNet50": 2048}  # that the head of each takes
CLASSES, BYTES = 10, 4


def printed() -> DataFrame:
    """The printed sizes by network, with what the double network adds, the bytes of a head, and the overhead."""
    table = papers.numbers("distrans", "table7").set_index("network")
    table["added"] = table["double_bytes"] - table["single_bytes"]
    table["head_bytes"] = [CLASSES * BYTES * FEATURES[name] for name in table.index]
    table["overhead"] = 100 * (table["added"] + table["offset_bytes"]) / table["single_bytes"]
    return table


def ours() -> DataFrame:
    """The sizes of our own networks of both kinds, next to the printed ones."""
    theirs, rows = printed(), {}
    for name in ("ResNet18", "ResNet50"):
        single = models.build(name.lower(), (3, 64, 64), CLASSES)
        double = DisTrans(variant="released").build(models.build(name.lower(), (3, 64, 64), CLASSES))
        sizes = [sum(v.numel() * v.element_size() for v in net.state_dict().values()) for net in (single, double)]
        rows[name] = {"single": sizes[0], "double": sizes[1], "printed single": theirs.loc[name, "single_bytes"]}
        rows[name] |= {"added": sizes[1] - sizes[0], "printed added": theirs.loc[name, "added"]}
    return DataFrame(rows).T


def figure(table: DataFrame):
    """What the head and the offset add to each network, in per cent of its bytes; diamonds: the printed per cents."""
    from matplotlib import pyplot

    fig, axes = pyplot.subplots(figsize=(7.6, 3.2), layout="constrained")
    places = range(len(table))
    head, offset = (100 * table[part] / table["single_bytes"] for part in ("added", "offset_bytes"))
    axes.barh(places, head, color="#0072B2", label="second channel's head")
    axes.barh(places, offset, left=head, color="#E69F00", label="offset")
    axes.plot(table["overhead_percent"], places, "D", color="white", markeredgecolor="black", label="the paper, in all")
    for place, value in zip(places, table["overhead"], strict=True):
        axes.annotate(f"{value:.3f} %", (value, place), (9, 0), textcoords="offset points", va="center")
    sizes = [f"{name}, {size / 1e6:.1f} MB" for name, size in table["single_bytes"].items()]
    axes.set_yticks(places, sizes)
    axes.invert_yaxis()
    axes.set(xlabel="more bytes than the network alone (%)", xlim=(0, 1.25 * table["overhead"].max()))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="lower right")
    pyplot.close(fig)
    return fig
