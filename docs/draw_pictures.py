"""Hook of MkDocs: pictures of the guides are drawn anew by each build, from numbers that the library computes.

The repository keeps them in docs/pictures, where its own pages show them; `python docs/draw_pictures.py` draws these.
In the site a picture stands in its page as SVG, so that its colours follow the light or the dark scheme of the page.
"""

import os
import re
import warnings
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

# The pictures are small: they need no kernels.
os.environ.setdefault("GPU_ENCODE_COMPILE", "never")

from gpu_encode import (
    Greedy,
    KFold,
    LeakWarning,
    LeaveOneOut,
    OneHotEncoder,
    Ordered,
    Prefixes,
    SpectralEncoder,
    TargetEncoder,
    VoteClassifier,
    interactions,
    leak_report,
    roc_auc_score,
    tune,
)
from gpu_encode.plots import (
    AscentDisplay,
    CalibrationDisplay,
    HierarchyDisplay,
    JointKeyDisplay,
    ScatterDisplay,
    SearchDisplay,
    ShrinkageDisplay,
    TrainingDisplay,
    TuningDisplay,
)

FOLDER = Path(__file__).parent / "pictures"
INK, PAPER = "var(--md-default-fg-color, #1b1b1b)", "var(--md-default-bg-color, #ffffff)"
BLUE, ORANGE = "#0072b2", "#d55e00"
BINS, WIDTH, HEIGHT = 20, 260, 175
SHOWN = re.compile(r'<img alt="([^"]*)" src="(?:\.\./)*pictures/([\w-]+)\.svg" ?/?>')


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Draw the pictures."""
    for name, picture in draw_all():
        path = f"pictures/{name}.svg"
        stored = files.get_file_from_path(path)
        if stored is not None:
            files.remove(stored)
        files.append(File.generated(config, path, content=picture))
    return files


def on_page_content(html: str, files: Files, **_: object) -> str:
    """Put each picture into its page, with its description for readers who do not see it."""

    def insert(shown: re.Match[str]) -> str:
        picture = files.get_file_from_path(f"pictures/{shown[2]}.svg").content_string
        return picture.replace("<svg ", f'<svg class="picture" role="img" aria-label="{shown[1]}" ', 1)

    return SHOWN.sub(insert, html)


def draw_all() -> Iterator[tuple[str, str]]:
    """Give the name and the SVG of each picture."""
    yield from draw_leak()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeakWarning)
        yield from ((name, write_svg(name, display)) for name, display in make_displays())


def draw_leak() -> Iterator[tuple[str, str]]:
    """Draw the encodings of the first page: of training rows, with and without their own targets, and of new rows."""
    rng = np.random.default_rng(0)
    shops, returned = rng.integers(2000, size=(5000, 1)), rng.integers(2, size=5000)
    new_shops, new_returned = rng.integers(2000, size=(5000, 1)), rng.integers(2, size=5000)
    encoder = TargetEncoder(smooth=20, cv=5)
    apart = encoder.fit_transform(shops, returned)[:, 0]
    seen, new = encoder.transform(shops)[:, 0], encoder.transform(new_shops)[:, 0]
    edges = np.linspace(min(seen.min(), apart.min()), max(seen.max(), apart.max()), BINS + 1)
    yield "leak-before", draw_histograms("Training rows that see themselves", seen, returned, edges)
    yield "leak-after", draw_histograms("Training rows by other folds", apart, returned, edges)
    yield "leak-new", draw_histograms("New rows", new, new_returned, edges)


def draw_histograms(title: str, encodings: Any, target: Any, edges: Any) -> str:
    """Draw how often each encoding occurs, among the rows of target 0 and of target 1."""
    counts = [np.histogram(encodings[target == label], edges)[0] for label in (0, 1)]
    tallest, bottom = max(each.max() for each in counts), HEIGHT - 20
    areas = ""
    for each, colour in zip(counts, (BLUE, ORANGE), strict=True):
        steps = "".join(f"V{bottom - 110 * count / tallest:.1f}h{WIDTH / BINS:g}" for count in each.tolist())
        areas += f'<path d="M0 {bottom}{steps}V{bottom}z" fill="{colour}" fill-opacity="0.55" stroke="{colour}"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="inherit" font-size="12">'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{PAPER}"/>{areas}<g fill="{INK}">'
        f'<text y="14" font-weight="bold" font-size="13">{title}</text>'
        f'<text y="32">AUC {roc_auc_score(target, encodings):.2f}</text>'
        f'<rect y="{bottom}" width="{WIDTH}" height="1"/><text y="{HEIGHT - 4}">{edges[0]:.2f}</text>'
        f'<text x="{WIDTH / 2:g}" y="{HEIGHT - 4}" text-anchor="middle">encoding</text>'
        f'<text x="{WIDTH}" y="{HEIGHT - 4}" text-anchor="end">{edges[-1]:.2f}</text></g></svg>'
    )


def make_displays() -> Iterator[tuple[str, Any]]:
    """Make each display of `gpu_encode.plots`, and the figure of a leak report, for rows that are made."""
    orders, returned = make_orders(3000)
    later, later_returned = make_orders(3000, seed=1)
    encoder = TargetEncoder(columns=["shop", ("city", "day")], smooth=10.0).fit(orders, returned)
    yield "shrinkage", ShrinkageDisplay.from_estimator(encoder, column="shop")
    yield "calibration", CalibrationDisplay.from_estimator(encoder, later, later_returned, column="shop")
    yield "joint-key", JointKeyDisplay.from_estimator(encoder, column=("city", "day"))
    tree = TargetEncoder(columns=["shop"], smooth=10.0, hierarchy={"shop": Prefixes(1)}).fit(orders, returned)
    yield "hierarchy", HierarchyDisplay.from_estimator(tree, column="shop")
    yield "tuning", TuningDisplay.from_tuned(tune(TargetEncoder(columns=["shop"]), orders, returned))
    voter = VoteClassifier(TargetEncoder(columns=interactions(["shop", "city", "day"], 3)), "weighted_mean")
    yield "ascent", AscentDisplay.from_estimator(voter.fit(orders, returned))
    yield from compare_models(orders.to_pandas(), returned)
    few, returned = orders.slice(0, 400), returned[:400]
    for name, scheme in (("training-leave-one-out", LeaveOneOut()), ("training-folds", KFold(5))):
        encoder = TargetEncoder(columns=["shop"], smooth=10.0, cv=scheme)
        yield name, TrainingDisplay.from_estimator(encoder, few, returned)
    yield "early-rows", EarlyRows()
    yield "leak-report", leak_report(TargetEncoder(smooth=1.0, cv=Greedy()), few, returned)


def compare_models(orders: Any, returned: Any) -> Iterator[tuple[str, Any]]:
    """Make the displays of two columns, of two models, and of a search for parameters."""
    few, rest, labels = orders[:400], orders[400:], np.array(["kept", "returned"])[returned]
    spectral = SpectralEncoder(2).fit(rest)
    yield "spectral", ScatterDisplay.from_estimator(spectral, few, labels[:400])
    linear = make_pipeline(TargetEncoder(columns=interactions(["shop", "city", "day"], 2)), LogisticRegression())
    forest = make_pipeline(OneHotEncoder(), RandomForestClassifier(100, min_samples_leaf=5, random_state=0))
    scores = [model.fit(rest, returned[400:]).predict_proba(few)[:, 1] for model in (linear, forest)]
    names = ("linear model on encodings of pairs", "forest on one-hot columns")
    yield "two-models", ScatterDisplay.from_predictions(*scores, labels[:400], names=names)
    grid = {"spectralencoder__n_components": [3, 10, 30, 60], "logisticregression__C": [0.0001, 0.001, 0.01, 1.0]}
    pipeline = make_pipeline(SpectralEncoder(), StandardScaler(), LogisticRegression())
    search = GridSearchCV(pipeline, grid, scoring="roc_auc", cv=4).fit(orders, returned)
    yield "search", SearchDisplay.from_search(search, "spectralencoder__n_components", lines="logisticregression__C")


class EarlyRows:
    """Variance and error of encodings by the number of rows that are seen: measured, and as the formulas say."""

    def plot(self) -> Any:
        """Draw both; return the figure."""
        from matplotlib.figure import Figure

        rng, weight, seen = np.random.default_rng(0), 4.0, np.arange(33)
        mean = rng.normal(size=4000)
        shops = np.tile(np.arange(4000), len(seen))
        sold = mean[shops] + rng.normal(size=len(shops))
        encoder = TargetEncoder(cv=Ordered(shuffle=False), smooth=weight, prior=0.0)
        codes = encoder.fit_transform(shops.reshape(-1, 1), sold).reshape(len(seen), -1)
        noise = codes - (seen / (seen + weight))[:, None] * mean
        figure = Figure(figsize=(6, 3.4), layout="constrained")
        axes = figure.subplots()
        laws = {
            "variance": (seen, noise.var(axis=1)),
            "squared error": (seen + weight**2, ((codes - mean) ** 2).mean(axis=1)),
        }
        for (said, (above, measured)), colour in zip(laws.items(), (BLUE, ORANGE), strict=True):
            axes.plot(seen, above / (seen + weight) ** 2, color=colour, label=f"{said}, formula")
            axes.plot(seen, measured, "o", color=colour, markersize=3, label=f"{said}, measured")
        axes.axvline(weight, color="0.6", linewidth=1)
        axes.set(xlabel="rows of the category before the row (the line: p = a)", ylabel="in units of v")
        axes.legend(frameon=False)
        return figure


def make_orders(n_rows: int, seed: int = 0) -> tuple[pa.Table, Any]:
    """Make orders: shops of a district are returned alike, cities differ by the day, and tickets tell nothing."""
    rng, laws = np.random.default_rng(seed), np.random.default_rng(7)
    districts = laws.normal(0, 0.8, 5)
    shops = np.array([f"{'abcde'[shop % 5]}{shop:02}" for shop in range(60)])
    of_shop = districts[np.arange(60) % 5] + laws.normal(0, 0.6, 60)
    of_city = laws.normal(0, 0.7, (4, 5))
    shop, city, day = (
        (rng.random(n_rows) ** 2 * 60).astype(int),
        rng.integers(4, size=n_rows),
        rng.integers(5, size=n_rows),
    )
    odds = of_shop[shop] + of_city[city, day] - 0.3
    returned = (rng.random(n_rows) < 1 / (1 + np.exp(-odds))).astype(int)
    named = {
        "shop": shops[shop],
        "city": np.array(["Lima", "Oslo", "Pune", "Riga"])[city],
        "day": np.array(["1", "2", "3", "4", "5"])[day],
    }
    return pa.table(named), returned


def write_svg(name: str, display: Any) -> str:
    """Draw a display, in colours of the page and without names that two pictures of a page could share."""
    import matplotlib as mpl

    drawn = StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        shown = display.plot()
        figure = getattr(shown, "figure_", shown)
        for ax in figure.axes:
            # Numbers in the cells of a heat map are light or dark as their cells are, whatever the page is.
            for number in ax.texts if ax.images else ():
                number.set_color("#010101" if number.get_color() == "black" else "#fefefe")
        figure.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None})
    text = drawn.getvalue()[drawn.getvalue().index("<svg ") :]
    text = re.sub(r' (?:width|height)="[\d.]+pt"', "", text, count=2)
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r'(<g) id="[^"]*"', r"\1", text)
    text = re.sub(r"font: ([\d.]+px) [^;\"]*", r"font-size: \1", text)
    text = text.replace("#ffffff", PAPER).replace("#000000", INK).replace("<svg ", f'<svg fill="{INK}" ', 1)
    return re.sub(r"\s*\n\s*", "\n", text)


if __name__ == "__main__":
    for picture, content in draw_all():
        (FOLDER / f"{picture}.svg").write_text(content)
