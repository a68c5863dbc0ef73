"""One row at least for every network: options that make it small, and the images it is tried on.

A new file in ``fednb/models`` needs a row here; the tests of tests/test_models.py follow from it.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Row:
    """shape: of the images. least: the smallest height and width. pixels: whether it predicts a class for each."""

    name: str
    shape: tuple[int, int, int]
    least: int
    options: dict = field(default_factory=dict)
    pixels: bool = False

    @property
    def given(self) -> dict:
        return {"name": self.name, **self.options}


ROWS = [
    Row("alexnet", (3, 63, 70), least=63, options={"width": 8}),
    Row("alexnet", (3, 63, 70), least=63, options={"width": 8, "normalisation": False}),
    Row("alexnet", (3, 63, 70), least=63, options={"width": 8, "groups": 2}),
    Row("digits_cnn", (3, 8, 8), least=8, options={"channels": 2, "width": 8}),
    Row("digits_cnn", (3, 8, 8), least=8, options={"channels": 2, "width": 8, "normalisation": False}),
    Row("digits_cnn", (3, 8, 8), least=8, options={"channels": 2, "width": 16, "groups": 2}),
    Row("lenet5", (3, 28, 45), least=28),
    Row("mobilenet_v2", (3, 33, 64), least=32),
    Row("mobilenet_v2", (3, 33, 64), least=32, options={"groups": 2}),
    Row("resnet18", (3, 33, 64), least=32),
    Row("resnet18", (3, 33, 64), least=32, options={"groups": 2}),
    Row("resnet50", (1, 64, 33), least=32),
    Row("squeezenet1_1", (1, 64, 33), least=32),
    Row("unet", (3, 32, 48), least=16, options={"channels": 2}, pixels=True),
    Row("unet", (3, 32, 48), least=16, options={"channels": 2, "normalisation": False}, pixels=True),
    Row("unet", (3, 32, 48), least=16, options={"channels": 2, "groups": 2}, pixels=True),
]
