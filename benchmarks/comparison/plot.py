"""The scores as a picture: a panel for each data set and model, a line for each scheme, a rule for each baseline."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.comparison.models import MODELS
from benchmarks.comparison.noise import standard_error
from benchmarks.comparison.report import cell_of, names_in, of_scheme
from gpu_encode.cli.whole_files import whole_files

Document = dict[str, Any]
COLOURS = {
    "greedy": "#c8643c",
    "kfold-5": "#1f6f8b",
    "kfold-10": "#6fb1c7",
    "kfold-5-blow-up": "#0d3b4a",
    "holdout": "#d9a441",
    "leave-one-out": "#a83232",
    "ordered": "#7a6aa8",
    "group-kfold-5": "#3f8f5a",
    "time-folds-5": "#8fbf6a",
    "ordered-by-time": "#5a5a2a",
}
RULES = {
    "numbers alone": ":",
    "scikit-learn TargetEncoder": "--",
    "OneHotEncoder": "-.",
    "native categories": "-.",
}
BELOW = ("greedy", "kfold-5-blow-up", "leave-one-out", "numbers alone", "OneHotEncoder")
FAINT = "#d9d9d9"


def can_plot() -> bool:
    """Whether there is anything to draw with."""
    return find_spec("matplotlib") is not None


def scored(document: Document, dataset: str, model: str) -> list[dict[str, Any]]:
    """Cells of a panel."""
    named = (dataset, model)
    return [cell for cell in document["cells"] if (cell["dataset"], cell["model"]) == named and cell["test"]]


def sound(document: Document, dataset: str, model: str) -> list[dict[str, Any]]:
    """Cells that a panel must show: scores of schemes that leak may lie far below it."""
    cells = scored(document, dataset, model)
    return [cell for cell in cells if cell.get("scheme", cell.get("baseline")) not in BELOW]


def draw(axes: Any, document: Document, dataset: str, model: str) -> None:
    """Draw one panel."""
    smoothings = names_in(document, "smoothing")
    schemes = names_in(document, "scheme")
    for number, scheme in enumerate(schemes):
        cells = [of_scheme(document, dataset, model, scheme, each) for each in smoothings]
        places = [place + (number - len(schemes) / 2) * 0.06 for place, cell in enumerate(cells) if cell]
        found = [cell["test"] for cell in cells if cell]
        if found:
            marks = {"color": COLOURS.get(scheme), "marker": "o", "markersize": 3, "linewidth": 0.8, "label": scheme}
            errors = [standard_error(each) for each in found]
            axes.errorbar(places, [np.mean(each) for each in found], errors, elinewidth=0.6, **marks)
    for name, dashes in RULES.items():
        cell = cell_of(document, dataset=dataset, model=model, baseline=name)
        if cell:
            axes.axhline(np.mean(cell["test"]), color="#222222", linestyle=dashes, linewidth=0.9, label=name)
    if within := [np.mean(cell["test"]) for cell in sound(document, dataset, model)]:
        room = (max(within) - min(within)) * 0.3 + 0.002
        best = max(np.mean(cell["test"]) for cell in scored(document, dataset, model))
        axes.set_ylim(min(within) - room, max(max(within) + room, best + room / 4))
    axes.set_xticks(range(len(smoothings)), smoothings, rotation=25, fontsize=7)
    axes.set_title(f"{dataset}, {model}", fontsize=10)
    axes.grid(color=FAINT, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def figure_of(document: Document) -> Any:
    """Figure of all data sets."""
    from matplotlib.figure import Figure

    names = names_in(document, "dataset")
    figure = Figure(figsize=(11, 3.2 * len(names)), layout="constrained", facecolor="white")
    for row, name in zip(figure.subplots(len(names), len(MODELS), squeeze=False), names, strict=True):
        for axes, model in zip(row, MODELS, strict=True):
            draw(axes, document, name, model)
        row[0].set_ylabel("score on new rows")
    figure.suptitle("means and standard errors over folds; what scores far less lies below its panel", fontsize=9)
    handles = [zip(*axes.get_legend_handles_labels(), strict=True) for axes in figure.axes]
    known = {text: handle for pairs in handles for handle, text in pairs}
    figure.legend(known.values(), known.keys(), loc="outside lower center", ncols=5, frameon=False, fontsize=8)
    return figure


def plot(document: Document, folder: Path) -> None:
    """Write the picture as PNG and SVG."""
    from matplotlib import rc_context

    figure = figure_of(document)
    # The same results give the same file.
    with (
        rc_context({"svg.hashsalt": "comparison"}),
        whole_files(folder / "comparison.png", folder / "comparison.svg") as [picture, drawing],
    ):
        figure.savefig(picture, format="png", dpi=110)
        figure.savefig(drawing, format="svg", metadata={"Date": None})
