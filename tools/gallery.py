"""The gallery, notebooks/README.md: for each notebook a thumbnail and a line of outcome, taken from the notebook."""

import base64
import io
from pathlib import Path

from PIL import Image

from fednb.commands.notebooks import Notebook
from fednb.files import write_atomically

WIDTH = 300  # pixels of a thumbnail
ACROSS = 3
# Track -> what it is for, and its notebooks: parts of names, in this order; each notebook is in the first that has it.
TRACKS = {
    "Learn": ("The four methods in pictures, and first steps.", ("methods/", "quickstart", "together/four_methods")),
    "Is it true?": (
        "Each table and figure of the papers, with the outcome of its first claim.",
        ("fedrdn/", "fedfa/", "fraug/", "distrans/"),
    ),
    "Look further": (
        "What the tables do not show.",
        ("looked_into", "pretrained", "vessels", "batch_norm", "duplicate", "speed", "scoreboard"),
    ),
    "Use your own": ("Your images, your method, your institutions.", ("your_data", "your_method", "network")),
}
HEAD = """# Gallery

Every notebook runs as it is: without data and without a GPU it shows recorded runs. `make run ONLY=NAME` executes one,
`PROFILE=paper` trains at the paper's setting. Written by `fednb report --readme` from the notebooks.
"""


def page(every: list[Notebook]) -> str:
    """The gallery as Markdown, with links from the folder of the notebooks."""
    parts, left = [HEAD], dict.fromkeys(every)
    for track, (about, names) in TRACKS.items():
        others = [name for later in list(TRACKS)[list(TRACKS).index(track) + 1 :] for name in TRACKS[later][1]]
        mine = [
            each
            for name in names
            for each in list(left)
            if name in each.name and not any(o in each.name for o in others)
        ]
        mine = list(dict.fromkeys(mine))
        for each in mine:
            del left[each]
        parts.append(f"## {track}\n\n{about}\n\n{_grid(mine)}\n")
    return "\n".join(parts)


def _grid(notebooks: list[Notebook]) -> str:
    cells = [_cell(each) for each in notebooks]
    cells += [""] * (-len(cells) % ACROSS)
    lines = ["| " + " | ".join(cells[at : at + ACROSS]) + " |" for at in range(0, len(cells), ACROSS)]
    return "\n".join(["| " * ACROSS + "|", "|---" * ACROSS + "|", *lines])


def _cell(notebook: Notebook) -> str:
    picture = Path("../figures/gallery") / f"{notebook.name}.png"
    shown = f"[![{notebook.name}]({picture.as_posix()})]({notebook.name}.ipynb)<br>" if thumbnail(notebook) else ""
    about = notebook.about
    result = " ".join(filter(None, (about.get("paper", ""), about.get("result", ""))))
    outcome = " ".join(outcome_of(notebook).split()).replace("|", "/")
    return f"{shown}[**{notebook.name}**]({notebook.name}.ipynb) {result}<br>{outcome or about.get('claim', '')}"


def outcome_of(notebook: Notebook) -> str:
    """What is above in the strip that the notebook answers by, else its first line of *found*; "" without a strip."""
    for cell in notebook.content["cells"]:
        for output in cell.get("outputs", []):
            lines = "".join(output.get("data", {}).get("text/plain", "")).splitlines()
            starts = [number for number, line in enumerate(lines) if line.startswith("found ")]
            if starts:
                rest = lines[starts[0] + 1 :]
                more = rest[
                    : next((number for number, line in enumerate(rest) if not line.startswith("  ")), len(rest))
                ]
                found = [line.removeprefix("found").strip() for line in (lines[starts[0]], *more)]
                return next((line for line in found if line.startswith("above ")), found[0])
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
            write_atomically(path, lambda file, small=small: file.write(small))
    return page(every)
