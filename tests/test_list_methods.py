"""`fednb list --methods`: what it says of a method is what the method's class and docstring say."""

import re

from methods import ROWS

from fednb import cli, registry
from fednb.commands.list import docstring, paper, summaries
from fednb.report import speed


def test_all_methods_are_listed_the_four_papers_first():
    ours = [method for method in summaries() if not method.source]
    names = [method.name for method in ours]
    assert names[:4] == ["fedrdn", "fedfa", "fraug", "distrans"]
    assert sorted(names) == sorted(row.name for row in ROWS)
    assert [(method.room, method.name) for method in ours[4:]] == sorted((m.room, m.name) for m in ours[4:])


def test_each_docstring_says_in_order_what_it_does_sends_and_keeps_and_where_it_is_from():
    wrong = []
    for room in registry.METHODS:
        for name in registry.builtin(room):
            text = docstring(room, name)
            said = re.split(r"^(?:Args|Raises|Reference)\b", text, flags=re.MULTILINE)[0]
            words = r"\b(sends?|receives?|sent|averaged)\b.*\b(keeps?|kept)\b|\b(keeps?|kept)\b.*\b(sends?|sent)\b"
            if paper(text) == "no reference" or not re.search(words, said, re.DOTALL | re.IGNORECASE):
                wrong.append(name)
    assert wrong == []


def test_a_reference_in_short():
    text = "A method.\n\nReference: {}\n\nAs printed: it keeps everything."
    long = "Doe et al., *On what one sends: and,\nkeeps*, CVPR 2030 (oral), Sec. 3; FedRDN."
    assert paper(text.format(long)) == "Doe et al., CVPR 2030"
    assert paper(text.format("FedFA, Sec. 2. Not released.")) == "FedFA"


def test_the_command_prints_the_methods_asked_for(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(speed, "FILE", tmp_path / "speed.json")
    speed.FILE.write_text('{"methods": {"fedprox": {"times": 1.0749, "least": 1.0, "most": 1.1, "bytes": 8}}}')
    assert cli.main(["list", "--methods", "--only", "fedprox"]) == 0
    assert capsys.readouterr().out == (
        "fedprox  (FedProx; Li et al., MLSys 2020; classification, segmentation)\n"
        "    Federated averaging with a proximal term in every local loss.\n    a round over FedAvg's: 1.07\n\n"
        f"{docstring('algorithms', 'fedprox')}\n"
    )
    assert cli.main(["list", "--methods", "--only", "fedprx"]) == 1
    assert 'no method has "fedprx" in its name: did you mean "fedprox"' in capsys.readouterr().err
