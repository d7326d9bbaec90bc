"""The results as one picture: rows a second against categories, a panel for each kind of keys."""

from collections import Counter
from importlib.util import find_spec
from math import log10
from pathlib import Path
from typing import Any

from benchmarks.gpu.tables import Document, Row
from benchmarks.rapids.grid import MIDDLE_ROWS
from benchmarks.rapids.tables import headline
from gpu_encode.cli.whole_files import whole_files

# Contender -> name and colour; distribution -> style of the line.
SHOWN = {
    "ours": ("gpu-encode", "#1f6f8b"),
    "cudf": ("cuDF groupby and merge", "#8d8d8d"),
    "cuml": ("cuML TargetEncoder", "#c8643c"),
}
STYLES = {"uniform": "-", "Zipf 1.5": "--"}
TITLES = {"int": "64-bit integers", "string": "strings", "category": "categories"}
FAINT = "#d9d9d9"


def can_plot() -> bool:
    """Whether there is anything to draw with."""
    return find_spec("matplotlib") is not None


def record_of(cell: Row, name: str) -> Row:
    """What is known of a contender; of ours, as users run it."""
    found: Row = headline(cell["contenders"]) if name == "ours" else cell["contenders"].get(name, {})
    return found


def chosen(document: Document) -> tuple[str, int]:
    """Work and number of rows to show: the first work, at the rows of most cells, nearest to the middle if in doubt."""
    shown = [cell for cell in document["cells"] if any("seconds" in record_of(cell, name) for name in SHOWN)]
    if not shown:
        message = "nothing was timed: there is nothing to draw"
        raise ValueError(message)
    work = next((name for name in document["works"] if any(cell["work"] == name for cell in shown)), shown[0]["work"])
    counted = Counter(cell["rows"] for cell in shown if cell["work"] == work)
    return work, max(counted, key=lambda rows: (counted[rows], -abs(log10(rows) - MIDDLE_ROWS)))


def line(cells: list[Row], name: str, keys: str, distribution: str) -> tuple[list[int], list[float]]:
    """Categories and rows a second of one contender on one kind of rows."""
    points = sorted(
        (cell["categories"], record_of(cell, name)["rows a second"])
        for cell in cells
        if (cell["keys"], cell["distribution"]) == (keys, distribution) and "seconds" in record_of(cell, name)
    )
    return [n for n, _ in points], [rate for _, rate in points]


def panel(axes: Any, cells: list[Row], keys: str) -> None:
    """Draw one kind of keys."""
    for name, (title, colour) in SHOWN.items():
        for distribution, style in STYLES.items():
            sizes, rates = line(cells, name, keys, distribution)
            if sizes:
                axes.plot(sizes, rates, style, color=colour, marker="o", markersize=4, label=f"{title}, {distribution}")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_title(TITLES.get(keys, keys), fontsize=11)
    axes.set_xlabel("categories")
    axes.xaxis.set_minor_formatter("")
    axes.grid(color=FAINT, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def draw(document: Document) -> Any:
    """Give the figure."""
    from matplotlib.figure import Figure

    work, rows = chosen(document)
    cells = [cell for cell in document["cells"] if (cell["work"], cell["rows"]) == (work, rows)]
    kinds = [keys for keys in TITLES if any(line(cells, name, keys, each)[0] for name in SHOWN for each in STYLES)]
    figure = Figure(figsize=(3.6 * len(kinds) + 1.2, 4.2), layout="constrained", facecolor="white")
    panels = figure.subplots(1, len(kinds), sharey=True, squeeze=False)[0]
    for axes, keys in zip(panels, kinds, strict=True):
        panel(axes, cells, keys)
    panels[0].set_ylabel("rows a second")
    figure.suptitle(f"{document['works'].get(work, work)}, {rows:,} rows, {document['device']}", fontsize=12)
    known = {text: handle for axes in panels for handle, text in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(known.values(), known.keys(), loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure


def plot(document: Document, folder: Path) -> list[Path]:
    """Write rapids.png and rapids.svg, or neither."""
    from matplotlib import rc_context

    figure, places = draw(document), [folder / "rapids.png", folder / "rapids.svg"]
    # The same results give the same file.
    with rc_context({"svg.hashsalt": "rapids"}), whole_files(*places) as [picture, drawing]:
        figure.savefig(picture, format="png", dpi=160)
        figure.savefig(drawing, format="svg", metadata={"Date": None})
    return places
