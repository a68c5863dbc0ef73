"""Pictures of what the four methods do: to an image, to the statistics of features, to embeddings, by an offset."""

import numpy
import torch
from matplotlib import pyplot

from fednb.methods import part
from fednb.report.plots._axes import as_written


def sliding(draw, **ranges):
    """``draw(**values)``, a figure, under a slider for each range ``(first, last)``; nothing without a kernel."""
    import ipywidgets

    sliders = {name: ipywidgets.IntSlider(first, first, last) for name, (first, last) in ranges.items()}
    return ipywidgets.interactive(draw, **sliders)


def under_statistics(images: dict, means, stds, number: int = 0):
    """One image of each site (rows) under the statistics of each site (columns): the diagonal, framed, is the site's
    own, what it is tested with.

    images: by site, floats in [0, 1] ``[n, channels, height, width]``. means, stds: ``[sites, channels]``.
    """
    names = list(images)
    figure, axes = _grid(len(names), len(names) + 1)
    for row, (site, own) in enumerate(images.items()):
        _show(axes[row, 0], own[number], "as it is" if row == 0 else "", site)
        for column, other in enumerate(names):
            seen = (own[number] - means[column][:, None, None]) / stds[column][:, None, None]
            place = axes[row, column + 1]
            _show(place, (seen + 2.5) / 5, f"statistics of {other}" if row == 0 else "")
            place.spines[:].set(visible=row == column, linewidth=2.5, color="#D55E00")
    return as_written(figure)


def pairs_of_statistics(means, stds, names):
    """Each site's pair in a plane: mean against deviation, a point for each colour channel."""
    figure, axes = _panels(1, width=4.6)
    for number, (name, mean, std) in enumerate(zip(names, means, stds, strict=True)):
        axes[0].plot(mean, std, linestyle="none", label=name, **_look(number))
    axes[0].set(xlabel="mean of a channel", ylabel="deviation of a channel", title="What each site sends: its pairs")
    _legend(figure, axes[0])
    return as_written(figure)


def clouds(panels: dict, x: str, y: str, title: str):
    """Points by client in panels with common axes: ``{title: {client: (x [n], y [n])}}``."""
    figure, axes = _panels(len(panels), common=True)
    for place, (name, of_clients) in zip(axes, panels.items(), strict=True):
        for number, (client, (across, up)) in enumerate(of_clients.items()):
            look = _look(number) | {"markersize": 3, "alpha": 0.5}
            place.plot(across, up, linestyle="none", label=client, **look)
        place.set(xlabel=x, title=name)
    axes[0].set_ylabel(y)
    _legend(figure, axes[0], markerscale=2)
    figure.suptitle(title)
    return as_written(figure)


def widened(statistics: dict, variance_of, seed: int = 0) -> dict:
    """Each client's statistics of images with noise of the variance that ``variance_of(own variance)`` says.

    statistics: by client, ``(means [n], deviations [n])``; ``variance_of``: of either, a function of it and its place.
    """
    draws, found = torch.Generator().manual_seed(seed), {}
    for client, pair in statistics.items():
        noise = torch.randn(2, len(pair[0]), generator=draws)
        variances = [variance_of(own.var(correction=0), place) for place, own in enumerate(pair)]
        found[client] = tuple(own + n * v**0.5 for own, n, v in zip(pair, noise, variances, strict=True))
    return found


def network_of(run, client: str):
    """The global network of a run as this client has it, with what it keeps for itself, as at test time."""
    run.model.load_state_dict(run.server.model | run.clients[client].memories.get("kept", {}), strict=False)
    return run.model.eval()


def first_stage(run, federation, count: int = 100) -> dict:
    """By client, what the first stage of a run's network makes of its first training images, as at test time."""
    with torch.no_grad():
        stage = network_of(run, federation.sites[0].name).stage1
        return {site.name: stage(site.train.images[:count].float() / 255) for site in federation.sites}


def bars(values: dict, title: str, y: str):
    """Bars beside each other for each channel: ``{name: [C]}``."""
    figure, axes = _panels(1, width=7)
    width = 0.8 / len(values)
    for number, (name, each) in enumerate(values.items()):
        places = numpy.arange(len(each)) + (number - (len(values) - 1) / 2) * width
        axes[0].bar(places, each, width, label=name, color=COLOURS[number])
    axes[0].set(title=title, xlabel="channel", ylabel=y)
    axes[0].legend(frameon=False, fontsize=8)
    return as_written(figure)


def embeddings(run, method, train, client: str, rounds: list[int]) -> dict:
    """What FRAug's parts make at a client at the end of these rounds, which are trained here: by round and kind.

    run: a ``fednb.FederatedRun`` with FRAug. method: the same ``FRAug``. train: the client's training images. Returns
    ``({title: {kind: [n, d]}}, generator, RTNet)`` of the last of the rounds.
    """
    sizes, panels = (run.model.head.in_features, run.clients[client].classes), {}
    for number in range(1, max(rounds) + 1):
        run.train_round()
        if number in rounds:
            memory = run.clients[client].memories["fraug"]
            g, m = (method.network(which, sizes).eval() for which in ("generator", "rtnet"))
            g.load_state_dict(run.server.memories["fraug"], strict=False)
            m.load_state_dict(part(memory, "rtnet"), strict=False)
            with torch.no_grad():
                real = network_of(run, client).features(train.images.float() / 255)  # u
                made = g(torch.randn(len(real), method.noise_width(sizes[0])), train.targets)  # v
                adapted = real + method.lambda_syn(number, run.recipe.rounds) * m(made, train.targets)  # Eq. 3
            kinds = {"real": real, "generated": made, "adapted": adapted, "prototypes": memory["prototypes"]}
            panels[f"round {number}"] = kinds
    return panels, g, m


def in_two_axes(panels: dict):
    """Embeddings on the first two principal axes of the last panel's real features.

    panels: ``{title: {kind: [n, d]}}``; a kind has one look in all panels. Axes fit each panel by itself, as features
    grow in training.
    """
    figure, axes = _panels(len(panels))
    for place, (title, kinds) in zip(axes, panels.items(), strict=True):
        centre = kinds["real"].mean(0)
        axes_of = torch.linalg.svd(kinds["real"] - centre, full_matrices=False)[2][:2]
        for number, (kind, rows) in enumerate(kinds.items()):
            across, up = ((rows - centre) @ axes_of.T).T
            look = _look(number) | {"markersize": 7 if kind == "prototypes" else 3, "alpha": 0.6}
            place.plot(across, up, linestyle="none", label=kind, **look)
        place.set(title=title, xticks=[], yticks=[])
    _legend(figure, axes[0], markerscale=1.5)
    return as_written(figure)


def with_offsets(image, start: dict, end: dict, alpha: float):
    """By client: its offset at the start and the end, what it changed by (scaled to the full range), and one image
    with the end's offset added and taken away (Eq. 1)."""
    heads = ("offset, at the start", "at the end", "change, scaled", "image", "towards the offset", "away from it")
    figure, axes = _grid(len(start), len(heads))
    for number, (row, client) in enumerate(zip(axes, start, strict=True)):
        change = end[client] - start[client]
        scaled = 0.5 + change / (2 * change.abs().max().clamp(min=1e-12))
        plus = (1 - alpha) * image[client] + alpha * end[client]
        minus = (1 + alpha) * image[client] - alpha * end[client]
        shown = (start[client], end[client], scaled, image[client], plus, minus)
        for place, picture, head in zip(row, shown, heads, strict=True):
            _show(place, picture, head if number == 0 else "")
        row[0].set_ylabel(client, rotation=0, horizontalalignment="right", verticalalignment="center", fontsize=9)
    return as_written(figure)


COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00")


def _look(number: int) -> dict:
    return {"color": COLOURS[number % len(COLOURS)], "marker": "osD^v"[number % 5]}


def _legend(figure, place, **how) -> None:
    """Below the panels, where no point is."""
    handles, names = place.get_legend_handles_labels()
    figure.legend(
        handles, names, loc="outside lower center", ncols=4 if figure.get_figwidth() > 4.5 else 2, frameon=False, **how
    )


def _panels(count: int, width: float = 2.4, common: bool = False):
    size = (width * count + 0.4, 3.4)
    figure, axes = pyplot.subplots(1, count, figsize=size, sharex=common, sharey=common, squeeze=False)
    figure.set_layout_engine("constrained")
    pyplot.close(figure)
    for place in axes[0]:
        place.spines[["top", "right"]].set_visible(False)
    return figure, axes[0]


def _grid(rows: int, columns: int, side: float = 1.15):
    figure, axes = pyplot.subplots(rows, columns, figsize=(side * columns + 0.6, side * rows), squeeze=False)
    figure.set_layout_engine("constrained")
    pyplot.close(figure)
    for place in axes.flat:
        place.set(xticks=[], yticks=[])
        place.spines[:].set_visible(False)
    return figure, axes


def _show(place, image, title: str = "", name: str = "") -> None:
    place.imshow(image.clamp(0, 1).permute(1, 2, 0).numpy())
    place.set_title(title, fontsize=8)
    place.set_ylabel(name, rotation=0, horizontalalignment="right", verticalalignment="center", fontsize=9)
