"""The texts of the site's other pages, in MyST Markdown: the first one, methods, data sets, the reference."""

import html
import inspect
import pkgutil
import re
from collections.abc import Callable, Container, Iterable, Sequence
from pathlib import Path
from types import ModuleType

import fednb
from fednb import catalogue, papers
from fednb.report import labels
from fednb.report.sentences import in_short, untested
from fednb.report.verdicts import CLAIM, PRINTED, SMALL, TESTED, VERDICTS
from fednb.site import scoreboard
from fednb.site.pages import Entry

OWN_PAGES = (
    "fednb.methods.algorithms",
    "fednb.methods.augmentations",
    "fednb.datasets",
)  # not in the reference a second time
INNER = ("commands", "cli", "site", "__main__")
FIRST = ("install", "running", "reading")  # of docs/; the others follow by name
HEADLINE = "fedrdn/fig1_convergence"  # whose first figure the first page shows
WAY = {
    "together/quickstart": "The quickstart: one federation, one network and ten methods, in minutes",
    "fedrdn/table1_main": "A paper's table, with its claims",
    "together/your_data": "Your images",
    "together/your_method": "Your method",
}
FOREST = (
    "An effect is what the first method of a row scores more than the second, in points. The diamond is the paper's, "
    "the dot ours. The thick line is its 95 % interval; the thin one is as wide as all pairs that the paper prints on "
    "the data set need together, and decides."
)
GLOSSARY = {
    "Claim": "a sentence of a paper that one run scores more than another, with the two printed numbers.",
    "As printed, small": "the two boards: at the paper's own setting, or at one for two cores, which judges no paper.",
    "Reproduced": "at the paper's setting the effect is above zero, and not distinguished from the printed one; "
    "*larger*, *smaller*: it is distinguished from that, too; *opposite*: it is below zero.",
    "Above, below": "at a smaller setting the effect is above or below zero: its interval leaves zero out.",
    "Not told": "the interval holds zero; *detectable* is the smallest effect that it would have told.",
    "Not testable": "a run has not learned, is not level at its end, or what the paper's argument needs does not hold.",
    "Exploratory": "the runs were made before the rules; *declared*: the rules named them before they were made.",
}
LINK = re.compile(r"\[([^\]\n]+)\]\((?:\.\./)+([\w/.-]+)((?:#[\w-]+)?)\)")


INTRODUCTION = """Four methods for federated learning on images that look different at each site, their rivals, and a
notebook for each table and figure of their papers, with the paper's numbers beside ours."""
DOORS = """<div class="doors">

[**See results**<br>Each claim with its verdict and the notebook that shows it](board.md)

[**Try it**<br>Install, run a notebook, with your images or without any](docs/install.md)

[**Add your method**<br>One file, tested by the same laws, beside all others](docs/writing.md)

</div>"""


def start(entries: list[Entry], docs: list[str], claims, summary: list[str], project: str = "") -> str:
    """The first page: what was found, and the ways on. project: what it is called, where the report is not of fednb.

    docs: the names of the pages of docs/. claims: of ``fednb.commands.scoreboard``. summary: what the last command did.
    """
    shown = {entry.name for entry in entries if entry.content}
    rooms = dict.fromkeys(entry.name.partition("/")[0] for entry in entries)
    guide = "\n\n[How to read the numbers](docs/reading.md) says more." if "reading" in docs else ""
    docs = [f"docs/{name}" for name in sorted(docs, key=lambda name: (name not in FIRST, name))]
    said = html.escape("\n".join(summary)).replace("\n", "&#10;")  # Markdown ends at an empty line what HTML it takes
    picture = (
        f"![Test accuracy over the rounds at FedRDN's printed setting](headline.png)\n\n*FedAvg alone and with each of "
        "three augmentations at FedRDN's printed setting; each curve ends beside the paper's number. From "
        f"[fedrdn/fig1_convergence](/notebooks/{HEADLINE}.ipynb).*"
    )
    way = [
        f"{number}. [{called}](/notebooks/{name}.ipynb)" if name in shown else f"{number}. {called}"
        for number, (name, called) in enumerate(({each: each for each in sorted(shown)} if project else WAY).items(), 1)
    ]
    results = ["board", *(f"papers/{paper}" for paper in reported(entries))]
    results += ["notebooks/index", *(f"notebooks/{room}/index" for room in rooms)]
    failed = [f"**Failed: {entry.name}.** {literal(entry.error)}" for entry in entries if entry.error]
    about = "Notebooks beside a paper's numbers, made with fednb." if project else INTRODUCTION
    return f"""# {project or "fednb"}

{about} {in_short(claims)}

{chr(10).join(failed)}

{scoreboard.bars(claims)}

{"" if project else DOORS}

## What was found

{FOREST}

{"".join(forest(paper, claims, shown) for paper in papers.names() if paper in set(claims["of"]))}

{picture if HEADLINE in shown else ""}

## Where to begin

{chr(10).join(way)}

## Our words

{chr(10).join(f"- **{word}**: {meaning}" for word, meaning in GLOSSARY.items())}{guide}

<details><summary>The last command</summary><pre>{said}</pre></details>

{_tree("Results", results)}

{_tree("How to", docs) if docs else ""}

{_tree("What it is made of", ["methods/index", "data/index", "reference/index"])}
"""


def reported(entries: list[Entry]) -> list[str]:
    """The papers that have a page: those with a notebook, ours first."""
    rooms = {entry.name.partition("/")[0] for entry in entries}
    return [paper for paper in papers.names() if paper in rooms]


def forest(paper: str, claims, shown: Container[str]) -> str:
    """One paper's claims: how many are tested at which setting, where that is shown, and a figure of their effects."""
    own = claims[claims["of"] == paper]
    tested = own[own["verdict"].isin(TESTED)]
    books = [name for name in tested["notebook"].unique() if name in shown]
    links = "".join(f", [{name.partition('/')[2]}](/notebooks/{name}.ipynb)" for name in books)
    ways = f'<a href="board.html#paper={paper}">Each of them</a>, [the report on the paper](papers/{paper}.md){links}.'
    alt = f"Each tested claim of {labels.printed(paper)}: the printed effect, ours and its intervals"
    figure = f"\n\n![{alt}]({paper}.svg)" if len(tested) else ""
    return f"**{labels.printed(paper)}**, {outcome(own)} {ways}{figure}\n\n"


def outcome(claims) -> str:
    """What became of one paper's claims on each board, and of the others: "63 claims. At the paper's setting: ..."."""
    tested = claims[claims["verdict"].isin(TESTED)]
    printed, small = (counted(tested[tested["setting"] == board]) for board in (PRINTED, SMALL))
    tables = [table for table in numbered(claims) if table not in {*tested["table"]}]
    numbers = ", ".join(table.removeprefix("table") for table in tables)
    every = len(claims.drop_duplicates([*CLAIM]))
    return (
        f"{every} claims. At the paper's setting: {printed}. At a smaller one: {small}. "
        f"Not tested: {counted(untested(claims))}" + (f"; nothing of Table {numbers} is tested." if tables else ".")
    )


def numbered(claims) -> list[str]:
    """The tables that claims are of, as the paper has them: table2 before table10."""
    return sorted(claims["table"].unique(), key=lambda table: (len(table), table))


def counted(claims) -> str:
    """ "3 reproduced, 1 not told", in the order of the signs."""
    counts = claims["verdict"].value_counts()
    return ", ".join(f"{counts[word]} {word}" for word in VERDICTS if word in counts) or "none"


def board(claims, curves, told: list[str], shown: Container[str], docs: Container[str]) -> str:
    """The page of the scoreboard: every claim. told: what is said of all. shown: the notebooks that have a page. docs:
    the names of the pages of docs/."""
    guide = " [What the words mean](docs/reading.md)." if "reading" in docs else ""
    return f"""---
html_theme.sidebar_secondary.remove: true
---

# Scoreboard

{chr(10).join(f"- {sentence}" for sentence in told)}

{scoreboard.board(claims, shown)}

<small>{scoreboard.LEGEND}</small>{guide} The numbers:
{{download}}`board.csv`, {{download}}`board.tex`.

## Claims on several runs

{scoreboard.curves(curves, shown)}

<small>{scoreboard.CURVE_LEGEND}</small>
"""


def books(entries: list[Entry]) -> str:
    return f"# Notebooks\n\n{_table_of(entries)}\n"


def grid(rows: Iterable[Sequence[str]], heads: Sequence[str] = ("", "")) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows))


def _table_of(entries: list[Entry]) -> str:
    rows = []
    for entry in entries:
        room, _, name = entry.name.partition("/")
        result = f"{labels.printed(room)} {entry.about.get('result', name)}" if room in papers.names() else name
        link = f"[{result}](/notebooks/{entry.name}.ipynb)" if entry.content else result
        state = " **Failed.**" if entry.error else "" if entry.content else " *Not executed.*"
        claim = html.escape(entry.about.get("claim", "")).replace("|", r"\|")
        rows.append((link, claim + state))
    return grid(rows, ("", "the paper claims"))


def linked(text: str, books: Container[str]) -> str:
    """A page of docs/ or the text of a notebook, whose links to files lead to what the site has of them; where it has
    nothing, the file's path stands in the place of the link.

    books: the notebooks that have a page.
    """

    def of_site(link: re.Match) -> str:
        called, path, anchor = link.groups()
        page = _page_of(path, books)
        return f"[{called}](/{page}{anchor})" if page else f"{called} (`{path}`)"

    return LINK.sub(of_site, text)


def _page_of(path: str, books: Container[str]) -> str | None:
    """The page that stands for a file of the repository; None where there is none."""
    room, _, name = path.removeprefix("fednb/").removeprefix("methods/").partition("/")
    if path.startswith("docs/"):
        return path
    if path.endswith(".ipynb"):
        path = f"notebooks/{path.removeprefix('notebooks/')}"
        return path if path[len("notebooks/") : -len(".ipynb")] in books else None
    if not (path.startswith("fednb/") and path.endswith(".py")):
        return None
    folder = {"algorithms": "methods", "augmentations": "methods", "datasets": "data"}.get(room)
    own = Path(name).stem.replace("__init__", "index")
    return f"{folder}/{own}.md" if folder else f"reference/{room.removesuffix('.py')}.md"


def _tree(caption: str, pages: Iterable[str]) -> str:
    return "\n".join(("```{toctree}", ":hidden:", *([f":caption: {caption}"] if caption else []), "", *pages, "```"))


def listed(title: str, pages: Iterable[str], module: Callable[[str], ModuleType]) -> str:
    """A page that leads to others; each is told by the first line of the module that it describes."""
    told = {name: (inspect.getdoc(module(name)) or "").partition("\n")[0] for name in pages}
    rows = ((f"[{name}]({name}.md)", line) for name, line in told.items())
    return f"# {title}\n\n{grid(rows)}\n\n{_tree('', pages)}\n"


def room(room: str, entries: list[Entry]) -> str:
    """The page of one folder of notebooks: a paper's, or those of all together."""
    title, about = room.capitalize(), ""
    if room in papers.names():
        told, title = papers.settings(room), labels.printed(room)
        about = f"*{told['title']}*, [arXiv:{told['arxiv']}](https://arxiv.org/abs/{told['arxiv']}). "
        if any(room in catalogue.names(each) for each in catalogue.METHODS):
            about += f"The method: [{title}](../../methods/{room}.md)."
    pages = [entry.name.partition("/")[2] for entry in entries if entry.content]
    return f"# {title}\n\n{about}\n\n{_table_of(entries)}\n\n{_tree('', pages)}\n"


def methods(methods: Sequence) -> str:
    rows = ((f"[{each.printed}]({each.name}.md)", each.paper, each.changes, each.tasks) for each in methods)
    table = grid(rows, ("method", "from", "changes", "tasks"))
    return f"# Methods\n\n{table}\n\n{_tree('', [method.name for method in methods])}\n"


def method(method, books: list[str]) -> str:
    told = {"from": method.paper, "changes": method.changes, "sends": method.sends, "keeps": method.keeps}
    told |= {"tasks": method.tasks, "a round over FedAvg's": method.cost, "found in": method.source}
    return _described(method.printed, told, books, catalogue.file(method.room, method.name))


def data_set(name: str, books: list[str], picture: str = "") -> str:
    loader = catalogue.file("datasets", name)
    told = {"task": catalogue.task(name), "source": str(loader.NEEDS or "embedded in the package")}
    told |= {"found in": catalogue.source("datasets", name)}
    image = f"![The first images of each site of {name}, a row for each site]({picture})"
    image = image if picture else "No picture: the images were not at hand when this report was made."
    return _described(name, told, books, loader, image)


def _described(title: str, told: dict, books: list[str], module: ModuleType, image: str = "") -> str:
    links = ", ".join(f"[{book}](../notebooks/{book}.ipynb)" for book in books)
    told = {name: literal(text) for name, text in told.items()} | {"notebooks": links}
    table = grid((name, text) for name, text in told.items() if text)
    name, code = Path(inspect.getsourcefile(module)).name, inspect.getsource(module)
    file = f"<details><summary>The file {name}</summary>\n\n~~~~python\n{code}~~~~\n\n</details>"
    return f"# {title}\n\n{table}\n\n{image}\n\n{_automodule(module.__name__)}\n\n{file}\n"


def literal(text: str) -> str:
    """The text as it is, in a line of Markdown or a cell of a table."""
    return re.sub(r"([\\`*_|$\[\]])", r"\\\1", html.escape(" ".join(text.split())))


def _automodule(module: str) -> str:
    return f"```{{eval-rst}}\n.. automodule:: {module}\n   :members:\n   :show-inheritance:\n```"


def modules() -> dict[str, list[str]]:
    """Room -> its public modules with their dotted names, the room itself first."""
    rooms = {}
    for module in pkgutil.walk_packages(fednb.__path__, "fednb."):
        room, *rest = module.name.split(".")[1:]
        if (
            not module.name.startswith(OWN_PAGES)
            and room not in INNER
            and not any(part.startswith("_") for part in rest)
        ):
            rooms.setdefault(room, []).append(module.name)
    return rooms


def reference(room: str, modules: list[str]) -> str:
    parts = [f"## `{module}`\n\n{_automodule(module)}" for module in modules]
    return f"# {room}\n\n" + "\n\n".join(parts) + "\n"
