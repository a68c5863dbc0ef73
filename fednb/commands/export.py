"""`fednb export`: recorded runs as CSV, or for MLflow or TensorBoard by their own writers; records are only read."""

import os
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from fednb import papers
from fednb.at_hand import is_stand_in
from fednb.commands.desk import Desk
from fednb.commands.notebooks import Notebook
from fednb.errors import RunError
from fednb.files import unwritable
from fednb.methods import TASKS
from fednb.recipe import Recipe
from fednb.records.progress import Display
from fednb.records.staleness import changed
from fednb.records.store import Record
from fednb.results import Results
from fednb.varied import plain

BATCH = 1000  # metrics that MLflow takes at once


@dataclass
class Run:
    """One recorded run, and the notebooks that ask for it."""

    recipe: Recipe
    record: Record
    books: list[Notebook]

    @property
    def settings(self) -> dict:
        """The whole recipe: ``federation.name``, ``algorithm.mu``, ``augmentations``, ``augmentations.fedrdn.std``."""
        full = self.recipe.full
        given = {each["name"]: {key: each[key] for key in each if key != "name"} for each in full["augmentations"]}
        return _flat(full | {"augmentations": list(given)}) | _flat({"augmentations": given})

    @property
    def tags(self) -> dict:
        """What is no setting: where its numbers come from, what must be known of them, the notebooks."""
        record, of = self.record, {book.about.get("paper") for book in self.books} & {*papers.names()}
        told = {"key": record.key, "fingerprint": record.fingerprint, "origin": record.origin, "notes": record.notes}
        told |= {"stale": changed(record), "notebooks": [book.name for book in self.books]}
        return _flat(told | {"stand_in_for": sorted(paper for paper in of if is_stand_in(self.recipe, paper))})

    def rounds(self):
        """The rows of ``Results.frame``, and those of the split "train" with the ``loss`` of each client. The column
        ``stand_in`` is not there: it hangs on a paper, and is a tag."""
        import pandas

        scores = Results({self.recipe: self.record}).frame.drop(columns="stand_in")
        head = scores.iloc[0].loc[:"stale"].to_dict() | {"took_part": True, "split": "train"}
        losses = [
            head | {"round": values["round"], "client": client, "loss": loss}
            for values in self.record.rounds
            for client, loss in values["loss"].items()
        ]
        return pandas.concat([scores, pandas.DataFrame(losses)], ignore_index=True)

    def series(self) -> Iterator[tuple[str, float, int]]:
        """Name, value and round, such as ``train/loss/amazon``; ``test/accuracy/average`` is over the sites that took
        part. Accuracies are per cent.

        What the tools refuse in a name is ``_``; RunError where two sites then have one.
        """
        import pandas

        rounds = self.rounds()
        measure = TASKS[rounds["task"].iloc[0]].measure
        means = rounds[rounds["took_part"]].groupby(["split", "round"], as_index=False)[["accuracy", "loss"]].mean()
        rounds = pandas.concat([rounds, means.assign(client="average")]).rename(columns={"accuracy": measure})
        found = rounds.melt(["split", "client", "round"], [measure, "loss"], "measure").dropna()
        found["name"] = found["split"] + "/" + found["measure"] + "/" + found["client"]
        found["name"] = found["name"].str.replace(r"[^\w./-]", "_", regex=True)
        if found.duplicated(["name", "round"]).any():
            sites = ", ".join(self.record.clients)
            raise RunError(
                f"{self.recipe} has sites that differ only in characters that become _ in names of metrics: {sites}. "
                "--to csv keeps their names."
            )
        return zip(found["name"], found["value"].tolist(), found["round"].tolist(), strict=True)


def main(options) -> int:
    write, needed, shown = TOOLS[options.to]
    if absent := [name for name in needed if find_spec(name) is None]:
        raise RunError(f'--to {options.to} needs {", ".join(absent)}, not installed here: pip install -e ".[export]"')
    desk = Desk.open(options)
    folder = Path(options.out).absolute() if options.out else desk.report / options.to
    if folder.is_file() or (folder.exists() and any(folder.iterdir())):
        raise RunError(f"{folder} is not empty, and an export adds to nothing: remove it, or name another with --out.")
    runs, wanted, errors = _runs(desk)
    for note in (*errors, *desk.store.notes):
        print(f"note: {note}")
    if not runs:
        raise RunError(
            f"of the {wanted} runs that these notebooks ask for with --profile {options.profile} none is recorded; "
            "`fednb run` with the same options trains them."
        )
    if refusal := unwritable(folder):
        raise RunError(f"{refusal} --out names another folder.")
    try:
        write(_told(runs), folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)  # half an export is none
        raise
    print(f"{len(runs)} runs exported, {wanted - len(runs)} not recorded\nnext: {shown.format(folder)}")
    return 1 if errors else 0


def csv(runs: Iterable[Run], folder: Path) -> None:
    """runs.csv has a row for each run, rounds.csv one for each run, round, client and split; ``key`` joins them."""
    import pandas

    rows = []
    for run in runs:
        run.rounds().to_csv(folder / "rounds.csv", mode="a", header=not rows, index=False)
        rows.append({"key": run.recipe.key, "run": run.recipe.label} | run.settings | run.tags)
    pandas.DataFrame(rows).to_csv(folder / "runs.csv", index=False)


def mlflow(runs: Iterable[Run], folder: Path) -> None:
    """mlflow.db: an experiment for each federation, a run for each record, as long as the record says."""
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Param

    client, experiments = MlflowClient(f"sqlite:///{folder / 'mlflow.db'}"), {}
    for run in runs:
        federation, now = run.recipe.full["federation"]["name"], int(1000 * time.time())
        if federation not in experiments:
            experiments[federation] = client.create_experiment(federation, (folder / "artifacts").as_uri())
        began, name = now - int(1000 * run.record.origin["seconds"]), f"{run.recipe.label}, seed {run.recipe.seed}"
        made = client.create_run(experiments[federation], began, run.tags, name).info.run_id
        client.log_batch(made, params=[Param(setting, str(value)) for setting, value in run.settings.items()])
        metrics = [Metric(metric, value, now, number) for metric, value, number in run.series()]
        for first in range(0, len(metrics), BATCH):
            client.log_batch(made, metrics[first : first + BATCH])
        client.set_terminated(made, end_time=now)


def tensorboard(runs: Iterable[Run], folder: Path) -> None:
    """A log directory for each run, with the name of its record; TensorBoard's numbers are in single precision."""
    from torch.utils.tensorboard import SummaryWriter
    from torch.utils.tensorboard.summary import hparams

    for run in runs:
        series = list(run.series())
        with SummaryWriter(folder / run.recipe.filename.removesuffix(".json")) as writer:
            for summary in hparams(run.settings, {name: None for name, _, _ in series if name.endswith("/average")}):
                writer.file_writer.add_summary(summary)
            writer.add_text("record", "\n".join(f"- {name}: {value}" for name, value in run.tags.items()))
            for name, value, number in series:
                writer.add_scalar(name, value, number)


TOOLS = {  # what writes, what it needs, how the folder is read
    "csv": (csv, (), 'pandas.read_csv("{}/rounds.csv")'),
    "mlflow": (mlflow, ("mlflow", "sqlalchemy", "alembic"), "mlflow ui --backend-store-uri sqlite:///{}/mlflow.db"),
    "tensorboard": (tensorboard, ("tensorboard",), "tensorboard --logdir {}"),
}


def _runs(desk: Desk) -> tuple[list[Run], int, list[str]]:
    """What is recorded of the chosen notebooks' runs, each once; how many they ask for; which cannot be planned."""
    books, records, errors = {}, {}, []
    for book, needs in desk.plan():
        errors += [f"{book.name} cannot be planned: {needs.error}"] if needs.error else []
        records |= needs.found
        for recipe in needs.found:
            books.setdefault(recipe, []).append(book)
    runs = [Run(recipe, record, books[recipe]) for recipe, record in records.items() if record]
    return runs, len(records), errors


def _flat(values: dict, place: str = "") -> dict:
    """In one level, values as a cell shows them."""
    flat = {}
    for name, value in values.items():
        flat |= _flat(value, f"{place}{name}.") if isinstance(value, dict) else {place + name: plain(value)}
    return flat


def _told(runs: list[Run]) -> Iterator[Run]:
    """The runs one after the other; where that takes long, stderr tells how far it is."""
    with Display(dict.fromkeys(run.recipe.key for run in runs)) as display:
        display.told = display.start
        for number, run in enumerate(runs, 1):
            display.update(run.recipe.key, f"exporting run {number}/{len(runs)}: {run.recipe}", 0.0)
            yield run
            display.share[run.recipe.key] = 1.0
