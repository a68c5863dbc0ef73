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

from fednb import papers, registry, report
from fednb.federation import Federation, Site, Split
from fednb.report import STAND_IN, labels, plots, samples
from fednb.report.plots import _axes
from fednb.report.selection import selected
from fednb.report.style import BLACK, BLUE, OUTSIDE, PALETTE, style
from fednb.report.verdicts import VERDICTS
from fednb.report.wording import OTHER_DATA
from mask_pictures import masks

ROUNDS = [(60, 70, 10, 30), (101, 101, 21, 51), (117, 103, 27, 52)]


def axes(figure):
    return figure.axes[0]


def texts(legend):
    return [text.get_text() for text in legend.get_texts()]


@pytest.fixture(autouse=True)
def no_screen(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")


def test_methods_are_told_apart_in_colour_in_grey_and_within_a_printed_table():
    methods = [*registry.builtin("algorithms"), *registry.builtin("augmentations")]
    for part in ("linestyle", "color"):
        assert len({(look["marker"], str(look[part])) for look in map(style, methods)}) == len(methods) >= 40
    for paper in papers.names():
        for table in papers.tables(paper):
            last = {labels.parts(run)[-1][0] for run in papers.labels_of(papers.printed(paper, table))}
            assert len({style(name)["color"] for name in last}) == len(last), f"{paper}, {table}"
    drawn = [own.marker for own in VERDICTS.values() if own.marker]
    assert len(set(drawn)) == len(drawn) == 8


def test_a_style_is_fixed_whatever_the_options_and_methods_from_outside(monkeypatch):
    printed, released = style("fedavg+fedfa"), style("fedavg+fedfa(variant=released)")
    assert printed["color"] == released["color"]
    assert all(printed[part] != released[part] for part in ("marker", "linestyle"))
    assert style("fedprox(mu=0.1)+fedrdn") == style("fedprox+fedrdn") and style("fedavg")["color"] == BLACK
    assert style("fedprox+fedrdn")["color"] == style("fedavg+fedrdn")["color"] == BLUE
    assert style("brand_new") == style("brand_new") and style("brand_new")["color"] == OUTSIDE not in PALETTE
    monkeypatch.setenv("FEDNB_METHODS", str(Path(__file__).parents[1] / "examples"))
    assert style("fedavg+fedfa") == printed


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


def test_variants_of_one_method_differ_in_look_and_long_names_are_below():
    names = ("fedavg+fraug", "fedavg+fraug(generator=False, rtnet=False)")
    shown = axes(plots.convergence(pandas.concat([run(name, ROUNDS) for name in names])))
    looks = [{line.get_color(), line.get_linestyle(), line.get_marker()} for line in shown.lines]
    assert len(looks) == 2 and not looks[0] & looks[1]
    assert shown.get_legend().get_bbox_to_anchor().transformed(shown.transAxes.inverted()).y0 < 0


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


def dots(panel):
    """(label of the row, x) of the white diamonds of rows of dots."""
    rows = [line.get_label() for line in panel.lines if line.get_linestyle() == "None"]
    return [(rows[int(y)], round(float(x), 6)) for each in panel.collections for x, y in each.get_offsets()]


def by_classes(*labels, federation="cifar10"):
    return [
        run(label, ROUNDS, federation=federation).assign(classes_per_client=number)
        for label in labels
        for number in (6, 10)
    ]


def test_scores_of_dice_have_the_intervals_of_their_images():
    """Student's t of 39 degrees of freedom is 2.0227 at 97.5 %."""
    rows = selected(run("fedavg", [(30, 20)], images={"DRIVE": 40, "HRF": 40}, federation="retinal_vessels"))
    scores = [numpy.linspace(0.7, 0.8, 40), numpy.linspace(0.45, 0.55, 40)]
    record = SimpleNamespace(
        key=rows["key"].iloc[0], clients=["DRIVE", "HRF"], checksums={}, scores=lambda: {1: scores}
    )
    study = SimpleNamespace(records=[record], paper=None, alike=SimpleNamespace(frame=rows))

    def upper(**given):
        return plots.scores(rows, **given).axes[1].lines[1].get_xdata()[1]

    assert upper(results=study) - 75 == pytest.approx(2.0227 * 100 * scores[0].std(ddof=1) / 40**0.5, rel=1e-4)
    assert upper() - 75 > 5


def test_the_legend_says_where_the_papers_numbers_are_of_another_setting(monkeypatch):
    rows = selected(run("fedavg", ROUNDS))
    study = SimpleNamespace(records=[], paper="fedrdn", alike=SimpleNamespace(frame=rows))
    for differing, label in (([], "the paper"), (["rounds 2 (paper: 100)"], "the paper, at its own setting")):
        monkeypatch.setattr(_axes, "deviations", lambda *_, told=differing: {"key": told})
        beside = papers.printed("fedrdn", "table1", "office_caltech10")
        assert label in texts(plots.scores(rows, printed=beside, results=study).legends[0])


@pytest.mark.filterwarnings("error")
def test_names_are_shown_as_they_are_and_leave_room(tmp_path):
    sites = dict.fromkeys(NAMES, 30)
    rows = run("fedavg", [range(len(sites)), range(len(sites))], images=sites)
    split = Split(torch.zeros((len(sites), 3, 8, 8), dtype=torch.uint8), torch.arange(len(sites)))
    federation = Federation("own", [Site(name, split, split, split) for name in sites], NAMES)
    pixels, drawn = numpy.zeros((len(sites), 3, 8, 8), "uint8"), numpy.zeros((len(sites), 8, 8), "uint8")
    figures = {
        "scores": plots.scores(rows[rows["round"] == 2]),
        "samples": samples.samples(federation),
        "masks": masks(pixels, drawn, drawn, NAMES),
        "curves": plots.lines({name: ([1, 2], [1, 2]) for name in ("$x$", "a_b")}, "$x$", "y", "$\\frac$"),
    }
    whole = ("scores", "samples", "masks")
    for kind, figure in figures.items():
        figure.savefig(tmp_path / "figure.png")
        shown = ["".join(text.get_text().split()) for text in figure.findobj(Text) if text.get_text()]
        assert all("".join(name.split()) in shown for name in NAMES if kind in whole and len(name) < 72), kind
        literal = [text for text in figure.findobj(Text) if "$" in text.get_text()]
        assert literal and not any(text.get_parse_math() for text in literal), kind
    powers = plots.lines({"a": ([1, 100], [1, 100])}, "x", "y", log=True)
    powers.draw_without_rendering()
    assert any(text.get_parse_math() and "mathdefault" in text.get_text() for text in powers.findobj(Text))


def test_claims_of_one_setting_are_dots_in_rows_the_primary_ones_first():
    rows = pandas.DataFrame(
        {
            **{"of": "fedrdn", "table": "table1", "federation": "x", "setting": ["small", "paper", ""]},
            **{"claim": ["1", "2", "3"], "effect": ["a", "b", "c"], "verdict": ["smaller", "opposite", "not run"]},
            **{"ours": [1.5, -60.0, numpy.nan], "paper": [2.0, 4.0, 2.0], "low": 1.0, "high": 3.0},
            **{"together_low": 0.5, "together_high": [3.5, 300.0, numpy.nan], "primary": [True, False, False]},
        }
    )
    shown = axes(plots.claims(rows.assign(at="where"), "fedrdn"))
    assert shown.get_title("left") == "FedRDN: 1 of 3 claims tested at the paper's setting, on x\nwhere"
    assert [line.get_marker() for line in shown.lines[2:5]] == [">", "X", "D"]  # an arrow, ours, the paper's
    assert shown.get_xlim() == (-63, 180)
    shown = axes(plots.claims(rows.assign(setting="small"), "fedrdn"))
    assert [tick.get_text() for tick in shown.get_yticklabels()] == ["a", "b"] and shown.yaxis_inverted()
    alone, together, ours, theirs = shown.lines[:4]
    assert (list(alone.get_xdata()), list(together.get_xdata())) == ([1.0, 3.0], [0.5, 3.5])
    assert alone.get_linewidth() > together.get_linewidth()
    assert (ours.get_xdata()[0], theirs.get_xdata()[0]) == (1.5, 2.0)
    assert (ours.get_color(), ours.get_marker()) == (VERDICTS["smaller"].color, "v")
    assert axes(plots.claims(rows[2:], "fedrdn")).get_title("left") == "FedRDN: no claim tested yet"
    rows.loc[1, "federation"] = "office_caltech10"
    shown = axes(plots.claims(rows, "fedrdn"))
    assert shown.get_title("left").endswith("setting, on Office-Caltech-10")


def test_scores_are_dots_in_rows_a_panel_for_each_site_beside_the_paper():
    chosen = selected(pandas.concat([run(label, ROUNDS[1:2]) for label in ("fedavg", *MANY)]))
    figure = plots.scores(chosen, printed=papers.printed("fedrdn", "table1", "office_caltech10"))
    assert [panel.get_title("left") for panel in figure.axes] == ["average", *map(labels.site, IMAGES)]
    panel = figure.axes[1]
    assert [tick.get_text() for tick in figure.axes[0].get_yticklabels()][:2] == ["FedAvg", "FedAvg + FedRDN"]
    reach, dot = panel.lines[1:3]  # after the interval of all tested together, which accuracies do not have
    assert list(dot.get_xydata()[0]) == pytest.approx([100 * 101 / 192, 0])
    assert reach.get_xdata()[0] < dot.get_xdata()[0] < reach.get_xdata()[1]
    assert dots(panel)[:2] == [("FedAvg", 53.12), ("FedAvg + FedRDN", 60.93)]
    assert texts(figure.legends[0]) == ["95 % interval", "the paper"]


def test_effects_are_dots_around_zero_filled_where_they_are_told_from_it():
    rights = {"fedavg": (60, 70, 10, 30), "fedavg+fedrdn": (150, 180, 28, 52), "fedprox": (60, 71, 10, 30)}
    made = results(*(run(label, [right], seed=seed) for label, right in rights.items() for seed in (0, 1)))
    table, printed = report.effects(made, "fedavg"), papers.printed("fedrdn", "table1", "office_caltech10")
    figure = plots.effects({"digits": table, "again": table}, printed=printed)
    panel, again = figure.axes
    rows = dict(zip((tick.get_text() for tick in panel.get_yticklabels()), panel.lines[2::3], strict=False))
    difference = mean_accuracy(rights["fedavg+fedrdn"]) - mean_accuracy(rights["fedavg"])
    assert rows["FedRDN"].get_xdata()[0] == pytest.approx(difference)
    assert (rows["FedRDN"].get_markerfacecolor(), rows["FedProx"].get_markerfacecolor()) == (BLUE, "white")
    assert list(panel.lines[-1].get_xdata()) == [0, 0] and again.get_title("left") == "again"
    together, alone = panel.lines[:2]
    own = table.frame.iloc[0]
    assert list(together.get_xdata()) == [own["together_low"], own["together_high"]]
    assert list(alone.get_xdata()) == [own["low"], own["high"]] and together.get_linewidth() < alone.get_linewidth()
    assert dots(panel)[0] == ("FedRDN", round(69.80 - 62.51, 6))
    assert figure.legends[0].get_title().get_text() == "points above FedAvg"
    twice = results(*(run(label, ROUNDS) for label in ("fedavg+fedrdn(n=1)", "fedavg+fedrdn")))
    assert not dots(axes(plots.effects(report.effects(twice, "fedavg+fedrdn"), printed=printed)))  # one printed row


def test_figures_by_a_field_have_the_numbers_printed_in_the_settings_that_its_values_make():
    printed = papers.printed("distrans", "table1", "cifar10")
    made = results(*by_classes("fedavg", "fedavg+distrans"))
    effects = plots.effects(report.effects(made, "fedavg", by="classes_per_client"), printed=printed)
    chosen = selected(pandas.concat(by_classes("fedavg")))
    scores = plots.scores(chosen, x="classes_per_client", printed=printed)
    for figure in (effects, scores):
        assert [panel.get_title("left") for panel in figure.axes] == ["classes per client 10", "classes per client 6"]
    assert [dots(panel) for panel in effects.axes] == [[("DisTrans", 2.0)], [("DisTrans", 3.7)]]
    assert [dots(panel) for panel in scores.axes] == [[("FedAvg", 80.9)], [("FedAvg", 78.2)]]
    assert scores.legends[0].get_title().get_text() == "test accuracy (%), mean over clients"
    assert [panel.lines[2].get_xdata()[0] for panel in scores.axes] == pytest.approx([mean_accuracy(ROUNDS[-1])] * 2)
    other = selected(pandas.concat(by_classes("fedavg", federation="cifar100")))
    assert "the paper" not in texts(plots.scores(other, x="classes_per_client", printed=printed).legends[0])


@pytest.mark.parametrize(
    ("federation", "mark"), [("shifted_digits", STAND_IN), ("retinal_vessels", OTHER_DATA), ("office_caltech10", "")]
)
def test_other_data_than_the_papers_are_written_on_every_figure_without_the_paper_beside_them(federation, mark):
    runs = [run(label, ROUNDS, stand_in=bool(mark), federation=federation) for label in ("fedavg", "fedprox")]
    frame, beside = pandas.concat(runs), papers.printed("fedrdn", "table1", "office_caltech10")
    scores = plots.scores(selected(frame), printed=beside)
    effects = plots.effects(report.effects(results(*runs), "fedavg"), printed=beside)
    curves = plots.convergence(frame, printed=beside)
    heads = [scores.get_suptitle(), axes(effects).get_title("left"), axes(curves).get_title("left")]
    assert all((f"{mark}: not the paper's images" in head) if mark else not head for head in heads)
    assert ("the paper" in texts(scores.legends[0])) == bool(dots(axes(effects))) == (not mark)
