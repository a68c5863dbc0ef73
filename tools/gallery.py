"""The gallery, notebooks/README.md: for each notebook a thumbnail and a line of outcome, taken from the notebook."""

import base64
import io
import re
from pathlib import Path

from PIL import Image

from fednb.commands.notebooks import Notebook
from fednb.files import write_together
from fednb.report import labels

WIDTH = 300  # pixels of a thumbnail
ACROSS = 3
# Track -> what it is for, and its notebooks: parts of names, in this order; each notebook is in the last that has it.
TRACKS = {
    "Learn": ("The four methods in pictures, and first steps.", ("methods/", "quickstart", "together/four_methods")),
    "Is it true?": (
        "Each table and figure of the papers, with the outcome of its first claim.",
        ("fedrdn/", "fedfa/", "fraug/", "distrans/"),
    ),
    "Look further": (
        "What the tables do not show.",
        (
            "equal_budget",
            "batch_norm",
            "shift_dial",
            "looked_into",
            "pretrained",
            "vessels",
            "duplicate",
            "speed",
            "scoreboard",
        ),
    ),
    "Use your own": ("Your images, your method, your institutions.", ("your_data", "your_method", "network")),
}
HEAD = """# Gallery

Every notebook runs as it is: without data and without a GPU it shows recorded runs. `make run ONLY=NAME` executes one,
`PROFILE=paper` trains at the paper's setting. Written by `fednb report --readme` from the notebooks.
"""


def page(every: list[Notebook]) -> str:
    """The gallery as Markdown, with links from the folder of the notebooks."""
    parts = [HEAD]
    for track, (about, names) in TRACKS.items():
        mine = [each for name in names for each in every if _track(each) == track and _part(each, names) == name]
        parts.append(f"## {track}\n\n{about}\n\n{_grid(mine)}\n")
    return "\n".join(parts)


def _track(notebook: Notebook) -> str:
    return next(track for track, (_, names) in reversed(TRACKS.items()) if _part(notebook, names))


def _part(notebook: Notebook, names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name in notebook.name), None)


def _grid(notebooks: list[Notebook]) -> str:
    cells = [_cell(each) for each in notebooks]
    cells += [""] * (-len(cells) % ACROSS)
    lines = ["| " + " | ".join(cells[at : at + ACROSS]) + " |" for at in range(0, len(cells), ACROSS)]
    return "\n".join(["| " * ACROSS + "|", "|---" * ACROSS + "|", *lines])


def _cell(notebook: Notebook) -> str:
    picture = Path("../figures/gallery") / f"{notebook.name}.png"
    shown = f"[![{notebook.name}]({picture.as_posix()})]({notebook.name}.ipynb)<br>" if thumbnail(notebook) else ""
    about = notebook.about
    paper = labels.printed(about["paper"]) if about.get("paper") else ""
    result = ", ".join(filter(None, (paper, about.get("result", ""))))
    outcome = " ".join(outcome_of(notebook).split()).replace("|", "/")
    return f"{shown}[**{notebook.name}**]({notebook.name}.ipynb) {result}<br>{outcome or about.get('claim', '')}"


def outcome_of(notebook: Notebook) -> str:
    """The first line of *found* in the strip that the notebook answers by, with the next where it ends in a colon; with
    the mark of other data than the paper's, or where all ran on embedded digits; "" without a strip."""
    shown = (output.get("data", {}) for cell in notebook.content["cells"] for output in cell.get("outputs", []))
    for each in shown:
        text = "".join(each.get("text/plain", ""))
        if outcome := re.search(r"^found +(.+(?:(?<=:)\n +.+)?)", text, re.MULTILINE):
            mark = re.match("(.+): nothing here speaks of the paper", text)
            alone = re.search(rf"^ran at +{labels.federation('shifted_digits')}, .+\n(?! )", text, re.MULTILINE)
            data = mark[1] if mark else "embedded digits" if alone else ""
            return f"{data}: " * bool(data) + outcome[1]
    return ""


def thumbnail(notebook: Notebook) -> bytes | None:
    """The first figure of an executed notebook, small, as PNG; None where it has none."""
    shown = (output.get("data", {}) for cell in notebook.content["cells"] for output in cell.get("outputs", []))
    first = next((data["image/png"] for data in shown if "image/png" in data), None)
    if first is None:
        return None
    picture = Image.open(io.BytesIO(base64.b64decode("".join(first))), formats=["PNG"]).convert("RGB")
    picture.thumbnail((WIDTH, WIDTH))
    packed = io.BytesIO()
    picture.quantize(32, dither=Image.Dither.NONE).save(packed, "PNG", optimize=True)
    return packed.getvalue()


def write(root: Path, every: list[Notebook]) -> str:
    """Writes the thumbnails of notebooks into figures/gallery/, removes others, and returns the page."""
    folder = root / "figures" / "gallery"
    there = {folder / f"{each.name}.png": small for each in every if (small := thumbnail(each))}
    for old in set(folder.rglob("*.png")) - there.keys():
        old.unlink()
    for path, small in there.items():
        if not path.exists() or path.read_bytes() != small:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_together({path: small})
    return page(every)
