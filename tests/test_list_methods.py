"""`fednb list --methods`: what it says of a method is what the method's class and docstring say."""

import re

import pairs
import pytest
from methods import ROWS

from fednb import cli
from fednb.commands import methods
from fednb.commands.methods import Told, told
from fednb.methods import Method, classification_only
from fednb.report import speed


def test_every_door_has_a_word():
    assert set(methods.CHANGES) == set(pairs.DOORS)


@pytest.mark.parametrize("method", told(), ids=lambda method: method.name)
def test_every_docstring_says_where_it_is_from_and_what_it_sends_and_keeps(method):
    assert re.fullmatch(r"FedRDN|FedFA|FRAug|DisTrans|.+ et al\., (\S+ )?\d{4}", method.paper)
    assert method.sends and method.keeps, "expected sentences with the words sends and keeps, or nothing"
    assert not re.search(r"[|\n\\]|``|\*\*", method.sends + method.keeps), "it would not fit into a cell of a table"


def test_all_methods_are_listed_the_four_papers_first():
    ours = [method for method in told() if not method.source]
    names = [method.name for method in ours]
    assert names[:4] == ["fedrdn", "fedfa", "fraug", "distrans"]
    assert sorted(names) == sorted(row.name for row in ROWS)
    assert [(method.room, method.name) for method in ours[4:]] == sorted((m.room, m.name) for m in ours[4:])


class Made(Method):
    r"""A method made for this test.

    It *changes* the images. With

    .. math:: x \leftarrow \mathrm{sends} \, x

        \text{keeps}  \tag{2}

    a client sends ``mean`` and :math:`n_k` numbers, once; the server, **always**, keeps their sum. Never are images
    sent. A client keeps nothing.

    Args:
        rate: sends and keeps.

    Raises RecipeError where it keeps.

    Reference: Doe and Roe et al., *On what one sends: and, keeps*,
    CVPR 2030 (oral), Sec. 3; FedRDN, Eq. 1.

    As printed: it keeps everything.
    """

    printed = "MADE"
    tasks = classification_only("it is made")

    def inputs(self, client, batch):
        pass

    def prepare_offer(self, client):
        return {}

    def prepare_share(self, server, offers):
        return {}


class MadeAgain(Made):
    """The same, and more.

    Sends and keeps nothing of its own.

    Reference: FedFA, Sec. 2. Not released.
    """

    printed = ""

    def predict(self, client, batch):
        pass


def test_what_is_told_of_a_made_method(monkeypatch):
    made = {"made": Made, "made_again": MadeAgain}
    monkeypatch.setattr(methods.catalogue, "names", lambda room: tuple(made) if room == "augmentations" else ())
    monkeypatch.setattr(methods.catalogue, "make", lambda room, name: made[name]())
    first, second = told()
    assert first == Told(
        room="augmentations",
        name="made",
        printed="MADE",
        paper="Doe and Roe et al., CVPR 2030",
        changes="the preparation, the images",
        sends="a client sends mean and n_k numbers, once",
        keeps="the server, always, keeps their sum; A client keeps nothing",
        tasks="classification",
        cost="not measured",
    )
    assert (second.printed, second.paper) == ("MadeAgain", "FedFA")
    assert second.changes == "the preparation, the images, the prediction"
    assert (second.sends, second.keeps) == ("nothing", "nothing")


def test_the_command_prints_the_methods_asked_for(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(speed, "FILE", tmp_path / "speed.json")
    assert cli.main(["list", "--methods", "--only", "fedprox"]) == 0
    assert capsys.readouterr().out == (
        "fedprox  (FedProx; Li et al., MLSys 2020; classification, segmentation)\n"
        "    changes: a round's start, a term of the loss\n    sends: nothing\n    keeps: nothing\n"
        "    a round over FedAvg's: not measured\n"
    )
    speed.FILE.write_text('{"methods": {"fedprox": {"times": 1.0749, "least": 1.0, "most": 1.1, "bytes": 8}}}')
    assert cli.main(["list", "--methods", "--only", "fedprox"]) == 0
    assert "    a round over FedAvg's: 1.07\n" in capsys.readouterr().out
    assert cli.main(["list", "--methods", "--only", "fedprx"]) == 1
    assert 'no method has "fedprx" in its name: did you mean "fedprox"' in capsys.readouterr().err
