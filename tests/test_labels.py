"""Labels of runs and their names; notebooks compute on neither."""

import json
import re

from fednb.commands import notebooks
from fednb.report import labels, wording

PARSING = re.compile(  # of a label or a name
    r"""\.str\.(extract|contains|split|startswith|endswith|partition|count)\(|"""
    r"""labels\.(parts|options|method|option_values)\(|\bre\.(search|match|findall|sub|split)\(|"""
    r"""["'][\w +=(){}\[\].,]+["'] (not )?in (run|label|row|name|recipe\.label)\b|"""
    r"""\b(run|label|row|recipe\.label)\.(split|startswith|endswith|r?partition|replace|find|remove\w+)\("""
)


def test_names_of_options_and_the_printed_row_of_a_run():
    assert labels.options("fedprox(mu=0.1)+fedfa(stages=[1, 2], probability=0.0)") == {
        ("fedprox", "mu=0.1"),
        ("fedfa", "stages=[1, 2]"),
        ("fedfa", "probability=0.0"),
    }
    assert labels.options("fedavg+fedfa") == frozenset()
    offered = ["fedavg", "fedavg+fedfa", "fedavg+fedfa(stages=[1, 2])", "fedprox(mu=0.1)"]
    assert labels.printed_for("fedfa(variant=released)", offered) == "fedavg+fedfa"
    assert labels.printed_for("fedavg+fedfa(stages=[1, 2], variant=released)", offered) == offered[2]
    assert labels.printed_for("fedavg+fedfa(stages=[1])", offered) == "fedavg+fedfa"
    assert labels.printed_for("fedprox", offered) is None and labels.printed_for("fedprox+fedfa", offered) is None


def test_names_of_methods():
    assert labels.parts("fedprox(mu=0.1)+fedrdn") == [("fedprox", ["mu=0.1"]), ("fedrdn", [])]
    assert labels.pretty("fedprox(mu=0.1)+new") == "FedProx (μ = 0.1) + new"
    assert labels.pretty("fraug(variant=released, growth=0.0)") == "FRAug, as released (growth 0)"
    assert labels.pretty("fraug(generator=False, ema=False)") == "FRAug (without generator, without EMA)"
    assert (labels.federation("office_caltech10"), labels.federation("new")) == ("Office-Caltech-10", "new")
    assert (labels.site("mnist_m"), labels.site("my_site")) == ("MNIST-M", "my_site")
    assert wording.minus("FRAug, as released", "FRAug") == "(FRAug, as released) - FRAug"
    assert labels.method("fedavg") == "fedavg" and labels.method("fedavg+fedrdn") == "fedrdn"
    assert labels.method("fedfa+fedmix") == labels.method("fedavg+fedmix+fedfa(p=0.5)") == "fedfa+fedmix"


def test_no_notebook_parses_a_label():
    """Frames have the options of methods as columns, such as ``fedfa.stages``, and recipes have theirs."""
    lines = [
        f"{book.name}: {line.strip()}"
        for book in notebooks.select()
        for cell in json.loads(book.path.read_text(encoding="utf-8"))["cells"]
        if cell["cell_type"] == "code"
        for line in "".join(cell["source"]).split("\n")
        if PARSING.search(line)
    ]
    assert not lines
    for line in ('x["row"].str.extract(r"stages=")', 'if "released" in run', 'label.partition("+")'):
        assert PARSING.search(line)
