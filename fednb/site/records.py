"""The recorded runs behind a page: a list of them, by the rows of its tables, and the links that lead there."""

import html
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from fednb.errors import StoreError
from fednb.records.record import read
from fednb.report import labels

HEADING = re.compile(r'(<th[^>]*class="row_heading[^"]*"[^>]*>)(.*?)(</th>)', re.DOTALL)


def rows_of(output: dict) -> dict[str, list[str]]:
    """The keys of the runs behind each row of the table that an output is, as ``Table.records``; none of another."""
    return output.get("metadata", {}).get("fednb", {}).get("records", {})


def keys(content: dict) -> set[str]:
    """Of all runs that the tables of an executed notebook have rows of."""
    outputs = (output for cell in content["cells"] for output in cell.get("outputs", []))
    return {key for output in outputs for own in rows_of(output).values() for key in own}


class Runs:
    """The recorded runs of one page. files: of their records; what is damaged counts as missing."""

    def __init__(self, files: Iterable[Path]):
        self.records = {}
        for path in files:
            with suppress(StoreError):
                self.records[f"{path.parent.name}/{path.name}"] = read(path)[0]
        self.named = {record.key: name for name, record in self.records.items()}
        self.groups: dict[tuple[str, ...], str] = {}  # a row's label and the files of its runs: the anchor

    def linked(self, table: str, rows: dict[str, list[str]]) -> str:
        """The HTML of a table whose rows lead to their runs; a row stays as it is where some have no file."""

        def link(found: re.Match) -> str:
            label = html.unescape(found[2])
            own = rows.get(label)
            if not own or not self.named.keys() >= {*own}:
                return found[0]
            group = (label, *(self.named[key] for key in own))
            anchor = self.groups.setdefault(group, f"runs-{len(self.groups) + 1}")
            return f'{found[1]}<a href="#{anchor}">{found[2]}</a>{found[3]}'

        return HEADING.sub(link, table)

    def listed(self) -> str:
        """All of them as HTML, those of a row below its label."""
        others = [name for name in self.records if not any(name in own for _, *own in self.groups)]
        parts = [
            f'<p id="{anchor}"><b>{html.escape(label)}</b></p><ul>{"".join(map(self._told, own))}</ul>'
            for (label, *own), anchor in self.groups.items()
        ]
        if others:
            title = "<p><b>Others</b></p>" if parts else ""
            parts.append(f"{title}<ul>{''.join(map(self._told, others))}</ul>")
        summary = f"Its {len(self.records)} recorded runs"
        return f"<details><summary>{summary}</summary>{''.join(parts)}</details>"

    def _told(self, name: str) -> str:
        recipe, origin = self.records[name].recipe, self.records[name].origin
        told = (
            labels.federation(recipe["federation"]["name"]),
            f"seed {recipe['seed']}",
            f"{recipe['rounds']} rounds",
            f"code {origin['code']}",
            " on ".join(dict.fromkeys((origin["device"], origin.get("processor", origin["device"])))),
            f"{origin['seconds']:.0f} s",
        )
        return f'<li>{html.escape(", ".join(told))}: <a href="../../records/{name}">{html.escape(name)}</a></li>'
