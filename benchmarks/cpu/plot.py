"""The results as pictures: rows a second against categories, the share of the limit, and how time grows."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.cpu.goals import best, ratio
from benchmarks.cpu.grid import WORKS
from gpu_encode.cli.whole_files import whole_files

Document = dict[str, Any]
Record = dict[str, Any]
COLOURS = {
    "ours": ("gpu-encode", "#1f6f8b"),
    "scikit-learn": ("scikit-learn", "#c8643c"),
    "library": ("best library", "#d9a441"),
    "engine": ("best engine", "#7a6aa8"),
    "hand-written": ("best hand-written", "#8d8d8d"),
    "limit": ("limit", "#222222"),
}
STYLES = {"int": "-", "text": "--", "sparse": "-.", "category": ":"}
FAINT = "#d9d9d9"


def can_plot() -> bool:
    """Whether there is anything to draw with."""
    return find_spec("matplotlib") is not None


def seconds_of(cell: Record, family: str) -> float | None:
    """Time of ours, or of the best of a family."""
    if family == "ours":
        found: float | None = cell["contenders"].get("ours", {}).get("seconds")
        return found
    peer = best(cell, family)
    return None if peer is None else peer[1]


def rates(cells: list[Record], family: str) -> list[tuple[int, float]]:
    """Categories and rows a second."""
    found = [(cell["categories"], seconds_of(cell, family), cell["rows"]) for cell in cells]
    return sorted((categories, rows / seconds) for categories, seconds, rows in found if seconds)


def shares(cells: list[Record], _: str) -> list[tuple[int, float]]:
    """Categories and the share of the limit."""
    found = [(cell["categories"], ratio(cell, "limit")) for cell in cells]
    return sorted((categories, share[1]) for categories, share in found if share is not None)


def style(axes: Any, title: str, bottom: str) -> None:
    """House style of a panel."""
    axes.set_xscale("log")
    axes.set_title(title, fontsize=10)
    axes.set_xlabel(bottom)
    axes.grid(color=FAINT, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def panels(cells: list[Record], what: Any, families: dict[str, tuple[str, str]], left: str, log: bool) -> Any:
    """Figure with a panel for each kind of work."""
    from matplotlib.figure import Figure

    works = [work for work in WORKS if any(cell["work"] == work for cell in cells)]
    figure = Figure(figsize=(13, 3.4 * -(-len(works) // 3)), layout="constrained", facecolor="white")
    grid = figure.subplots(-(-len(works) // 3), min(3, len(works)), squeeze=False).ravel()
    for axes, work in zip(grid, works, strict=False):
        for keys, dashes in STYLES.items():
            group = [cell for cell in cells if (cell["work"], cell["keys"]) == (work, keys)]
            for family, (title, colour) in families.items():
                if points := what(group, family):
                    marks = {"color": colour, "marker": "o", "markersize": 3, "label": f"{title}, {keys}"}
                    axes.plot(*zip(*points, strict=True), dashes, **marks)
        style(axes, WORKS[work], "categories")
        axes.set_ylabel(left)
        axes.set_yscale("log" if log else "linear")
    for axes in grid[len(works) :]:
        axes.set_visible(False)
    add_legend(figure)
    return figure


def add_legend(figure: Any) -> None:
    """One legend for all panels."""
    handles = [zip(*axes.get_legend_handles_labels(), strict=True) for axes in figure.axes]
    known = {text: handle for pairs in handles for handle, text in pairs}
    figure.legend(known.values(), known.keys(), loc="outside lower center", ncols=6, frameon=False, fontsize=8)


def growth(rows: list[Record]) -> Any:
    """Figure of time against each axis."""
    from matplotlib.figure import Figure

    axes_names = list(dict.fromkeys(row["axis"] for row in rows))
    figure = Figure(figsize=(3.4 * len(axes_names), 3.6), layout="constrained", facecolor="white")
    colours = ("#1f6f8b", "#c8643c", "#7a6aa8", "#8d8d8d")
    works = list(dict.fromkeys(row["work"] for row in rows))
    for axes, name in zip(figure.subplots(1, len(axes_names), squeeze=False)[0], axes_names, strict=True):
        for work, colour in zip(works, colours, strict=False):
            points = [
                (row["value"], row["ms"])
                for row in rows
                if (row["axis"], row["work"]) == (name, work) and row.get("ms")
            ]
            if points:
                axes.plot(*zip(*points, strict=True), color=colour, marker="o", markersize=3, label=work)
        style(axes, f"time by {name}", name)
        axes.set_ylabel("ms")
        axes.set_yscale("log")
    add_legend(figure)
    return figure


def figures(document: Document) -> dict[str, Any]:
    """All pictures that there is something for."""
    found = {}
    for rows in sorted({cell["rows"] for cell in document["cells"]}):
        cells = [cell for cell in document["cells"] if cell["rows"] == rows]
        if any(seconds_of(cell, "ours") for cell in cells):
            found[f"rates-{rows}"] = panels(cells, rates, COLOURS, "rows a second", True)
            only = {"ours": COLOURS["ours"]}
            found[f"limit-{rows}"] = panels(cells, shares, only, "share of the limit", False)
    if any(row.get("ms") for row in document["scaling"]):
        found["scaling"] = growth(document["scaling"])
    return found


def plot(document: Document, folder: Path) -> list[Path]:
    """Write every picture as PNG and SVG."""
    from matplotlib import rc_context

    written = []
    for name, figure in figures(document).items():
        places = [folder / f"{name}.png", folder / f"{name}.svg"]
        # The same results give the same file.
        with rc_context({"svg.hashsalt": "cpu"}), whole_files(*places) as [picture, drawing]:
            figure.savefig(picture, format="png", dpi=130)
            figure.savefig(drawing, format="svg", metadata={"Date": None})
        written += places
    return written
