"""Results as pictures: a figure for each grid, times along an axis, a line for the best of every family."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.harness.grid import Grid, Topic
from benchmarks.harness.results import Document
from benchmarks.harness.tables import fastest
from benchmarks.harness.worker import Record
from gpu_encode.cli.whole_files import whole_files

COLOURS = ("#1f6f8b", "#c8643c", "#d9a441", "#7a6aa8", "#8d8d8d", "#222222", "#3f8f5a", "#a83232")
STYLES = ("-", "--", "-.", ":")
FAINT = "#d9d9d9"


def can_plot() -> bool:
    """Whether there is anything to draw with."""
    return find_spec("matplotlib") is not None


def save(figure: Any, folder: Path, name: str, size: int = 130) -> list[Path]:
    """Write a figure as PNG and SVG; the same results give the same files."""
    from matplotlib import rc_context

    places = [folder / f"{name}.png", folder / f"{name}.svg"]
    with rc_context({"svg.hashsalt": name}), whole_files(*places) as [picture, drawing]:
        figure.savefig(picture, format="png", dpi=size)
        figure.savefig(drawing, format="svg", metadata={"Date": None})
    return places


def add_legend(figure: Any) -> None:
    """One legend for all panels."""
    handles = [zip(*axes.get_legend_handles_labels(), strict=True) for axes in figure.axes]
    known = {text: handle for pairs in handles for handle, text in pairs}
    figure.legend(known.values(), known.keys(), loc="outside lower center", ncols=6, frameon=False, fontsize=8)


def lines_of(grid: Grid, cells: list[Record]) -> dict[tuple[str, str], list[tuple[float, float]]]:
    """Points of each line: a family, and values of the axes that tell lines apart."""
    lines: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for cell in cells:
        rest = [str(cell[axis]) for axis in grid.lines if axis in cell]
        for family in dict.fromkeys(record["family"] for record in cell["contenders"].values()):
            best = fastest(cell, family)
            if best is not None:
                lines.setdefault((family, ", ".join(rest)), []).append((cell[grid.across], best[1] * 1e3))
    return lines


def draw(grid: Grid, cells: list[Record]) -> Any:
    """Draw a figure with a panel for each value of one axis."""
    from matplotlib.figure import Figure

    panels = list(dict.fromkeys(cell.get(grid.panel, "") for cell in cells))
    n_lines = -(-len(panels) // 3)
    figure = Figure(figsize=(13, 3.4 * n_lines), layout="constrained", facecolor="white")
    families, others = {}, {}
    for axes, value in zip(figure.subplots(n_lines, 3, squeeze=False).ravel(), [*panels, None, None], strict=False):
        lines = lines_of(grid, [cell for cell in cells if cell.get(grid.panel, "") == value])
        axes.set_visible(bool(lines))
        for (family, rest), points in lines.items():
            colour = COLOURS[families.setdefault(family, len(families)) % len(COLOURS)]
            dashes = STYLES[others.setdefault(rest, len(others)) % len(STYLES)]
            marks = {"color": colour, "linestyle": dashes, "marker": "o", "markersize": 3}
            axes.plot(*zip(*sorted(points), strict=True), **marks, label=f"{family}, {rest}".rstrip(", "))
        axes.set(title=str(value), xlabel=grid.across, ylabel="ms", xscale="log", yscale="log")
        axes.grid(color=FAINT, linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    add_legend(figure)
    return figure


def plot(topic: Topic, document: Document, folder: Path) -> list[Path]:
    """Write a picture of each grid whose axis of times is one of numbers."""
    written = []
    for grid in topic.grids:
        cells = [cell for cell in document["cells"] if cell["grid"] == grid.name]
        if cells and all(isinstance(cell.get(grid.across), int) for cell in cells):
            written += save(draw(grid, cells), folder, grid.name)
    return written
