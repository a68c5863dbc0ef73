from pathlib import Path
from types import SimpleNamespace

import numpy
import pandas
import pytest
import torch
from loaders import NAMES
from made_results import IMAGES, mean_accuracy, results, run
from matplotlib.colors import to_rgb
from matplotlib.text import Text

from fednb import load, papers, registry, report
from fednb.federation import Federation, Site, Split
from fednb.report import STAND_IN, labels, plots, samples
from fednb.report.intervals import of_settings, spreads_of
from fednb.report.plots import _axes
from fednb.report.selection import selected
from fednb.report.style import BLACK, BLUE, ORANGE, OUTSIDE, PALETTE, style, styles
from fednb.report.verdicts import VERDICTS
from fednb.report.wording import OTHER_DATA

ROUNDS = [(60, 70, 10, 30), (101, 101, 21, 51), (117, 103, 27, 52)]


def axes(figure):
    return figure.axes[0]


def texts(legend):
    return [text.get_text() for text in legend.get_texts()]


@pytest.fixture(autouse=True)
def no_screen(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")


def test_no_two_methods_of_a_printed_table_share_a_colour():
    for paper in papers.names():
        for table in papers.tables(paper):
            printed = papers.printed(paper, table)
            runs = printed["algorithm"].str.cat(printed["augmentation"].str.split("(").str[0], sep="+").unique()
            last = {labels.parts(run)[-1][0]: style(run)["color"] for run in runs}
            assert len(set(last.values())) == len(last), f"{paper}, {table}: {last}"


def test_no_two_methods_share_colour_and_marker_or_line_and_marker():
    methods = [*registry.builtin("algorithms"), *registry.builtin("augmentations")]
    for part in ("linestyle", "color"):
        looks = {(look["marker"], str(look[part])) for look in map(style, methods)}
        assert len(looks) == len(methods) >= 40
    drawn = [own.marker for own in VERDICTS.values() if own.marker]
    assert len(set(drawn)) == len(drawn) == 8


def test_a_style_is_fixed_and_options_do_not_change_it_but_for_the_variant():
    printed, released = style("fedavg+fedfa"), style("fedavg+fedfa(variant=released)")
    assert printed["color"] == released["color"] and printed["marker"] != released["marker"]
    assert printed["linestyle"] != released["linestyle"]
    assert style("fedavg")["color"] == BLACK
    assert style("fedprox(mu=0.1)+fedrdn") == style("fedprox+fedrdn")
    assert style("fedprox+fedrdn")["color"] == style("fedavg+fedrdn")["color"] == BLUE
    assert style("brand_new") == style("brand_new") and style("brand_new")["color"] == OUTSIDE not in PALETTE


def test_rows_of_one_method_are_told_apart_by_shade_line_and_marker():
    ways = [f"fedavg+distrans(aggregation={way})" for way in ("none", "mean", "network")]
    looks = styles({row: row for row in ("fedavg", *ways, "fedavg+fedrdn")})
    assert {row: looks[row] for row in ("fedavg", "fedavg+fedrdn")} == {
        "fedavg": style("fedavg"),
        "fedavg+fedrdn": style("fedavg+fedrdn"),
    }
    for part in ("color", "linestyle", "marker"):
        assert len({str(looks[way][part]) for way in ways}) == 3
    light = [sum(to_rgb(looks[way]["color"])) for way in ways]
    assert light == sorted(light)


def test_a_method_from_outside_leaves_our_colours_as_they_are(monkeypatch):
    ours = [name for room in registry.METHODS for name in registry.builtin(room)]
    before = [style(name) for name in ours]
    monkeypatch.setenv("FEDNB_METHODS", str(Path(__file__).parents[1] / "examples"))
    assert {name for room in registry.METHODS for name in registry.names(room)} > set(ours)
    assert [style(name) for name in ours] == before


def test_convergence_draws_the_mean_over_clients_and_seeds_with_a_band():
    frame = pandas.concat([run("fedavg", ROUNDS), run("fedavg", ROUNDS[::-1], seed=1), run("fedavg+fedrdn", ROUNDS)])
    shown = axes(plots.convergence(frame, title="Fig. 1"))
    means = [mean_accuracy(right) for right in ROUNDS]
    fedavg, fedrdn = shown.lines
    assert fedavg.get_ydata() == pytest.approx([(means[0] + means[2]) / 2, means[1], (means[0] + means[2]) / 2])
    assert fedrdn.get_ydata() == pytest.approx(means)
    assert list(fedrdn.get_xdata()) == [1, 2, 3]
    assert len(shown.collections) == 1  # one band: the other method has one seed
    assert texts(shown.get_legend()) == ["FedAvg, 2 seeds", "FedAvg + FedRDN, 1 seed"]
    assert fedrdn.get_color() == BLUE and shown.get_title("left") == "Fig. 1"


def test_curves_beside_printed_numbers_end_in_their_names_and_both_numbers():
    printed = papers.printed("fedrdn", "table1", "office_caltech10")
    frame = pandas.concat([run("fedavg", ROUNDS), run("brand_new", ROUNDS[:1])])
    shown = axes(plots.convergence(frame, printed=printed))
    told = {text.get_text() for text in shown.texts}
    end = mean_accuracy(ROUNDS[-1])
    first = mean_accuracy(ROUNDS[0])
    assert told == {f"FedAvg\n{end:.1f} %, the paper 62.5 ◇", f"brand_new\n{first:.1f} %"}
    assert [dots.get_offsets().tolist() for dots in shown.collections] == [[[3, 62.51]]] and shown.get_legend() is None
    assert {to_rgb(text.get_color()) for text in shown.texts} == {(0, 0, 0)}
    beside = [line for line in shown.lines if line.get_linestyle() == "None"]  # markers
    assert {line.get_color() for line in beside} == {style(run)["color"] for run in ("fedavg", "brand_new")}
    stand_in = axes(plots.convergence(frame.assign(stand_in=True), printed=printed))
    assert stand_in.get_legend() is not None and not stand_in.texts


def claimed(**columns):
    head = {
        "of": "fedrdn",
        "table": "table1",
        "effect": "A - B",
        "federation": "x",
        "paper": 2.0,
        "low": 1.0,
        "high": 3.0,
        "together_low": 0.5,
        "together_high": 3.5,
    }
    rows = [head | dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return pandas.DataFrame(rows).assign(claim=[f"claim {number}" for number in range(len(rows))])


def test_tested_claims_are_dots_in_rows_beside_the_printed_ones():
    rows = claimed(
        verdict=["reproduced", "not run", "opposite", "smaller"],
        ours=[2.5, numpy.nan, -60.0, 1.5],
        paper=[2.0, 2.0, 4.0, 2.0],
        of=["fedrdn", "fedrdn", "fedrdn", "fedfa"],
        setting=["as printed", "", "as printed", "as printed"],
    )
    twice = pandas.concat([rows, rows[2:3].assign(verdict="below", setting="small")])  # on both boards
    assert axes(plots.claims(twice, "fedrdn")).get_title("left") == "FedRDN: 2 of 3 claims tested, on x"
    nothing = plots.claims(claimed(verdict=["one seed"], ours=[2.5], setting=["small"]), "fedrdn")
    assert axes(nothing).get_title("left") == "FedRDN: no claim tested yet"
    (fedfa,) = plots.claims(rows, "fedfa").axes
    assert fedfa.get_title("left") == "FedFA: 1 of 1 claims tested, on x"
    alone, together, ours, theirs = fedfa.lines[:4]
    assert (list(alone.get_xdata()), list(together.get_xdata())) == ([1.0, 3.0], [0.5, 3.5])
    assert alone.get_linewidth() > together.get_linewidth()
    assert (ours.get_xdata()[0], theirs.get_xdata()[0]) == (1.5, 2.0)
    assert ours.get_color() == VERDICTS["smaller"].color and ours.get_marker() == "v"


def test_claims_are_in_the_order_of_the_printed_effect_and_say_which_board():
    rows = claimed(
        verdict=["above"] * 3, ours=[1.0] * 3, paper=[1.0, 3.0, 2.0], effect=["a", "b", "c"], setting=["small"] * 3
    )
    rows.loc[1, "setting"] = "as printed"
    shown = axes(plots.claims(rows, "fedrdn"))
    assert [tick.get_text() for tick in shown.get_yticklabels()] == [
        "Table 1: b (as printed)",
        "Table 1: c",
        "Table 1: a",
    ]
    assert shown.yaxis_inverted()
    rows.loc[1, "federation"] = "office_caltech10"
    shown = axes(plots.claims(rows, "fedrdn"))
    assert shown.get_yticklabels()[0].get_text() == "Table 1, Office-Caltech-10: b (as printed)"


MANY = [f"fedavg+{name}" for name in ("fedrdn", "fedfa", "fraug", "distrans(variant=released)", "mixup", "moex")]


def test_more_than_six_curves_have_a_panel_each_with_fedavg_behind():
    frame = pandas.concat([run(label, ROUNDS) for label in (MANY[0], "fedavg", *MANY[1:])])
    figure = plots.convergence(frame, title="Many")
    titles = [panel.get_title("left") for panel in figure.axes]
    assert titles[:2] == ["FedAvg + FedRDN", "FedAvg + FedFA"] and titles[3] == "FedAvg + DisTrans, as\nreleased"
    assert len(figure.axes) == len(MANY) and "grey: FedAvg" in figure.get_suptitle()
    behind, own = figure.axes[0].lines
    assert (behind.get_color(), own.get_color()) == ("0.7", BLUE)
    assert list(own.get_ydata()) == pytest.approx([mean_accuracy(right) for right in ROUNDS])


def test_scores_are_dots_in_rows_a_panel_for_each_site_beside_the_paper():
    chosen = selected(pandas.concat([run(label, ROUNDS[1:2]) for label in ("fedavg", *MANY)]))
    figure = plots.scores(chosen, printed=papers.printed("fedrdn", "table1", "office_caltech10"))
    assert [panel.get_title("left") for panel in figure.axes] == [*map(labels.site, IMAGES), "average"]
    panel = figure.axes[0]
    assert [tick.get_text() for tick in panel.get_yticklabels()][:2] == ["FedAvg", "FedAvg + FedRDN"]
    reach, dot = panel.lines[1:3]  # after the interval of all tested together, which accuracies do not have
    assert list(dot.get_xydata()[0]) == pytest.approx([100 * 101 / 192, 0])
    assert reach.get_xdata()[0] < dot.get_xdata()[0] < reach.get_xdata()[1]
    assert [d.get_offsets().tolist() for d in panel.collections][:2] == [[[53.12, 0]], [[60.93, 1]]]
    assert panel.get_legend() is None and not panel.patches
    assert texts(figure.legends[0]) == ["95 % interval", "the paper"]


def test_effects_are_dots_around_zero_filled_where_they_are_told_from_it():
    rights = {"fedavg": (60, 70, 10, 30), "fedavg+fedrdn": (150, 180, 28, 52), "fedprox": (60, 71, 10, 30)}
    made = results(*(run(label, [right], seed=seed) for label, right in rights.items() for seed in (0, 1)))
    table = report.effects(made, "fedavg")
    figure = plots.effects({"digits": table, "again": table}, title="Effects")
    panel, again = figure.axes
    rows = dict(zip((tick.get_text() for tick in panel.get_yticklabels()), panel.lines[2::3], strict=False))
    fedrdn, fedprox = rows["FedRDN"], rows["FedProx"]
    difference = mean_accuracy(rights["fedavg+fedrdn"]) - mean_accuracy(rights["fedavg"])
    assert fedrdn.get_xdata()[0] == pytest.approx(difference)
    assert (fedrdn.get_markerfacecolor(), fedprox.get_markerfacecolor()) == (BLUE, "white")
    assert list(panel.lines[-1].get_xdata()) == [0, 0] and again.get_title("left") == "again"
    together, alone = (list(line.get_xdata()) for line in panel.lines[:2])
    own = table.frame.iloc[0]
    assert together == [own["together_low"], own["together_high"]] and alone == [own["low"], own["high"]]
    assert panel.lines[0].get_linewidth() < panel.lines[1].get_linewidth()
    assert figure.legends[0].get_title().get_text() == "points above FedAvg"


def dots(panel):
    """(label of the row, x) of the white diamonds of rows of dots."""
    rows = [line.get_label() for line in panel.lines if line.get_linestyle() == "None"]
    return [(rows[int(y)], round(float(x), 6)) for each in panel.collections for x, y in each.get_offsets()]


def test_effects_have_the_printed_difference_as_a_diamond():
    made = results(*(run(label, ROUNDS, seed=seed) for label in ("fedavg", "fedavg+fedrdn") for seed in (0, 1)))
    printed = papers.printed("fedrdn", "table1", "office_caltech10")
    panel = axes(plots.effects(report.effects(made, "fedavg"), printed=printed))
    assert dots(panel) == [("FedRDN", round(69.80 - 62.51, 6))]
    twice = results(*(run(label, ROUNDS) for label in ("fedavg+fedrdn(n=1)", "fedavg+fedrdn")))
    assert not dots(axes(plots.effects(report.effects(twice, "fedavg+fedrdn"), printed=printed)))  # one printed row
    stand_in = [run(label, ROUNDS, stand_in=True, federation="shifted_digits") for label in ("fedavg", "fedavg+fedrdn")]
    assert not dots(axes(plots.effects(report.effects(results(*stand_in), "fedavg"), printed=printed)))


def by_classes(*labels, federation="cifar10"):
    return [
        run(label, ROUNDS, federation=federation).assign(classes_per_client=number)
        for label in labels
        for number in (6, 10)
    ]


def test_effects_by_a_field_have_a_panel_for_each_value_with_the_difference_printed_there():
    made = results(*by_classes("fedavg", "fedavg+distrans"))
    table = report.effects(made, "fedavg", by="classes_per_client")
    figure = plots.effects(table, printed=papers.printed("distrans", "table1", "cifar10"))
    assert [panel.get_title("left") for panel in figure.axes] == ["classes per client 10", "classes per client 6"]
    assert [dots(panel) for panel in figure.axes] == [[("DisTrans", 2.0)], [("DisTrans", 3.7)]]


@pytest.mark.parametrize("federation, mark", [("shifted_digits", STAND_IN), ("office_caltech10", OTHER_DATA)])
def test_effects_on_other_data_than_the_papers_say_so(federation, mark):
    runs = [run(label, ROUNDS, stand_in=True, federation=federation) for label in ("fedavg", "fedprox")]
    table = report.effects(results(*runs), "fedavg")
    assert table.mark == mark and mark in table.text()
    assert mark in axes(plots.effects(table)).get_title("left")


def test_scores_of_dice_have_the_intervals_of_their_images():
    """Student's t of 39 degrees of freedom is 2.0227 at 97.5 %."""
    rows = selected(run("fedavg", [(30, 20)], images={"DRIVE": 40, "HRF": 40}, federation="retinal_vessels"))
    scores = [numpy.linspace(0.7, 0.8, 40), numpy.linspace(0.45, 0.55, 40)]
    record = SimpleNamespace(
        key=rows["key"].iloc[0], clients=["DRIVE", "HRF"], checksums={}, scores=lambda: {1: scores}
    )
    study = SimpleNamespace(records=[record], paper=None, alike=SimpleNamespace(frame=rows))

    def upper(**given):
        return axes(plots.scores(rows, **given)).lines[1].get_xdata()[1]

    assert upper(results=study) - 75 == pytest.approx(2.0227 * 100 * scores[0].std(ddof=1) / 40**0.5, rel=1e-4)
    assert upper() - 75 > 5


def test_scores_by_a_field_have_the_numbers_printed_in_the_settings_that_its_values_make():
    printed = papers.printed("distrans", "table1", "cifar10")
    figure = plots.scores(selected(pandas.concat(by_classes("fedavg"))), x="classes_per_client", printed=printed)
    assert [panel.get_title("left") for panel in figure.axes] == ["classes per client 10", "classes per client 6"]
    assert [dots(panel) for panel in figure.axes] == [[("FedAvg", 80.9)], [("FedAvg", 78.2)]]
    other = selected(pandas.concat(by_classes("fedavg", federation="cifar100")))
    figure = plots.scores(other, x="classes_per_client", printed=printed)
    assert "the paper" not in texts(figure.legends[0])


def test_scores_have_the_intervals_of_tables_which_know_all_recorded_runs():
    """Two seeds each, 3 to 5 points apart: together they know it better than the one that is drawn alone."""
    values = {"fedfa": (60, 64), "fedrdn": (65, 69), "fraug": (61, 66), "mixup": (70, 73)}
    everything = pandas.concat(
        run(f"fedavg+{name}", [(right,)], seed=seed, images={"here": 100})
        for name, both in values.items()
        for seed, right in enumerate(both)
    )
    chosen = selected(everything[everything["run"] == "fedavg+fedfa"])
    study = SimpleNamespace(records=[], paper=None, alike=SimpleNamespace(frame=everything))

    def whiskers(**given):
        spans = [panel.lines[1].get_xdata() for panel in plots.scores(chosen, **given).axes]
        return [high - low for low, high in spans]

    [expected] = of_settings([chosen], known=spreads_of(selected(everything)))
    assert whiskers(results=study) == pytest.approx([own.high - own.low for own in expected.values()])
    assert all(own > 1.5 * shared for own, shared in zip(whiskers(), whiskers(results=study), strict=True))


def test_the_legend_says_where_the_papers_numbers_are_of_another_setting(monkeypatch):
    rows = selected(run("fedavg", ROUNDS))
    study = SimpleNamespace(records=[], paper="fedrdn", alike=SimpleNamespace(frame=rows))
    for differing, label in (([], "the paper"), (["rounds 2 (paper: 100)"], "the paper, at its own setting")):
        monkeypatch.setattr(_axes, "deviations", lambda *_, told=differing: {"key": told})
        beside = papers.printed("fedrdn", "table1", "office_caltech10")
        assert label in texts(plots.scores(rows, printed=beside, results=study).legends[0])


def test_scores_by_local_epochs_are_in_numerical_order():
    frames = [run("fedavg", ROUNDS[:1], local_epochs=10), run("fedavg", ROUNDS[1:2], local_epochs=5)]
    figure = plots.scores(
        selected(pandas.concat([*frames, run("fedavg", ROUNDS[2:], local_epochs=1)])), x="local_epochs"
    )
    assert [panel.get_title("left") for panel in figure.axes] == [f"local epochs {number}" for number in (1, 5, 10)]
    values = [panel.lines[2].get_xdata()[0] for panel in figure.axes]
    assert values == pytest.approx([mean_accuracy(right) for right in ROUNDS[::-1]])
    assert figure.legends[0].get_title().get_text() == "test accuracy (%), mean over clients"


def test_a_stand_in_is_written_on_every_figure_and_has_no_paper_beside_it():
    frame = run("fedavg", ROUNDS, federation="shifted_digits", stand_in=True)
    points = numpy.arange(12.0).reshape(6, 2)
    beside = papers.printed("fedrdn", "table1", "office_caltech10")
    panels = plots.scores(selected(frame), printed=beside)
    assert STAND_IN in panels.get_suptitle() and "the paper" not in texts(panels.legends[0])
    for figure in (
        plots.convergence(frame),
        plots.embedding({"before": points}, [0] * 6, [0] * 6, stand_in=True),
    ):
        assert STAND_IN in axes(figure).get_title("left")
    assert STAND_IN not in axes(plots.convergence(run("fedavg", ROUNDS))).get_title("left")
    vessels = run("fedavg", ROUNDS, federation="retinal_vessels", stand_in=True)
    assert "OTHER DATA: not the paper's images" in axes(plots.convergence(vessels)).get_title("left")


def test_embedding_has_a_panel_coloured_by_site_and_one_by_class():
    points = numpy.arange(16.0).reshape(8, 2)
    labels, sites = [0, 0, 1, 1, 0, 0, 1, 1], [0, 0, 0, 0, 1, 1, 1, 1]
    figure = plots.embedding({"before": points}, labels, sites, ["amazon", "dslr"], ["mug", "bike"])
    assert [panel.get_title("left") for panel in figure.axes] == ["before, by site", "before, by class"]
    by_site, by_class = (panel.collections[0] for panel in figure.axes)
    assert by_site.get_offsets().tolist() == by_class.get_offsets().tolist() == points.tolist()
    for dots, numbers in ((by_site, sites), (by_class, labels)):
        colours = list(map(tuple, dots.get_facecolors()))
        assert [colours.index(colour) for colour in colours] == [numbers.index(number) for number in numbers]
    assert len({str(path.vertices) for path in by_class.get_paths()}) == 2
    assert texts(figure.legends[0]) == ["site", "amazon", "dslr", "class", "mug", "bike"]


def test_where_each_class_is_at_a_site_of_its_own_one_look_tells_both():
    panels = {"before": numpy.arange(8.0).reshape(4, 2)}
    figure = plots.embedding(panels, [1, 0, 1, 0], [0, 1, 0, 1], ["a", "b"], ["mug", "bike"])
    assert texts(figure.legends[0]) == ["mug", "bike"]
    assert len({str(path.vertices) for path in figure.axes[0].collections[0].get_paths()}) == 2


def test_figures_are_closed_and_can_be_saved(tmp_path):
    from matplotlib import pyplot

    before = pyplot.get_fignums()
    figure = plots.scores(selected(run("fedavg", ROUNDS)))
    figure.savefig(tmp_path / "bars.png")
    assert pyplot.get_fignums() == before and (tmp_path / "bars.png").stat().st_size > 1000


def test_samples_shows_a_row_of_pictures_for_each_site():
    federation = load("shifted_digits")
    figure = samples.samples(federation)
    assert len(figure.axes) == 8 * len(federation.sites)
    assert [axes.get_ylabel() for axes in figure.axes[::8]] == [site.name for site in federation.sites]
    shown = figure.axes[1].images[0].get_array()
    assert (shown == federation.sites[0].train.images[1].permute(1, 2, 0).numpy()).all()


@pytest.mark.filterwarnings("error")
def test_names_are_shown_as_they_are_and_leave_room(tmp_path):
    sites = dict.fromkeys(NAMES, 30)
    rows = run("fedavg", [range(len(sites)), range(len(sites))], images=sites)
    split = Split(torch.zeros((len(sites), 3, 8, 8), dtype=torch.uint8), torch.arange(len(sites)))
    federation = Federation("own", [Site(name, split, split, split) for name in sites], NAMES)
    numbers, points = numpy.arange(len(sites)), numpy.random.default_rng(0).normal(size=(len(sites), 2))
    pixels, drawn = numpy.zeros((len(sites), 3, 8, 8), "uint8"), numpy.zeros((len(sites), 8, 8), "uint8")
    figures = {
        "scores": plots.scores(rows[rows["round"] == 2]),
        "samples": samples.samples(federation),
        "masks": samples.masks(pixels, drawn, drawn, NAMES),
        "embedding": plots.embedding({"$x$": points}, numbers % 2, numbers, NAMES, NAMES),
        "curves": plots.lines({name: ([1, 2], [1, 2]) for name in ("$x$", "a_b")}, "$x$", "y", "$\\frac$"),
    }
    whole = ("scores", "samples", "masks")
    for kind, figure in figures.items():
        figure.savefig(tmp_path / "figure.png")
        shown = ["".join(text.get_text().split()) for text in figure.findobj(Text) if text.get_text()]
        assert all("".join(name.split()) in shown for name in NAMES if kind in whole and len(name) < 72), kind
        literal = [text for text in figure.findobj(Text) if "$" in text.get_text()]
        assert literal and not any(text.get_parse_math() for text in literal), kind
    legend = texts(figures["embedding"].legends[0])
    assert len(legend) == 2 + len(sites) + 2 and " _a" in legend  # two heads, and the two classes
    powers = plots.lines({"a": ([1, 100], [1, 100])}, "x", "y", log=True)
    powers.draw_without_rendering()
    assert any(text.get_parse_math() and "mathdefault" in text.get_text() for text in powers.findobj(Text))


def test_lines_show_what_they_are_given():
    figure = plots.lines({"measured": ([1, 2], [3, 4]), "bound": ([1, 2], [5, 6])}, "t", "error", log=True)
    (shown,) = figure.axes
    assert [line.get_label() for line in shown.lines] == ["measured", "bound"]
    assert list(shown.lines[0].get_ydata()) == [3, 4] and shown.get_xscale() == shown.get_yscale() == "log"
    apart = axes(plots.lines({"ours": ([1, 2], [3, 4])}, "stages", "%", joined=False))
    assert apart.lines[0].get_linestyle() == "None" and apart.lines[0].get_marker() == "o"


def test_masks_are_coloured_by_what_was_found():
    """A row of four pixels: hit, missed, false, and one of which nothing is asked."""
    images = numpy.zeros((1, 3, 1, 4), numpy.uint8)
    targets, found = numpy.array([[[1, 1, 0, 255]]], numpy.uint8), numpy.array([[[1, 0, 1, 1]]], numpy.uint8)
    figure = samples.masks(images, targets, found, ["clinic"])
    _, mask, prediction = (axes.get_images()[0].get_array() for axes in figure.axes)
    black, blue, orange, white, grey = (to_rgb(c) for c in (BLACK, BLUE, ORANGE, "white", "0.85"))
    numpy.testing.assert_allclose(mask[0], [black, black, white, grey])
    numpy.testing.assert_allclose(prediction[0], [black, blue, orange, grey])
    assert figure.axes[0].get_ylabel() == "clinic"
