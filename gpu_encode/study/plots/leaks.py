"""A leak report: how well a tree predicts from training encodings, and from encodings of new rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpu_encode.study.plots.display import BLUE, ORANGE, Display, shorten


@dataclass(eq=False)
class LeakDisplay(Display):
    """Intervals of both scores, column by column.

    Parameters
    ----------
    columns : list of ColumnReport
        Reports of the columns that have scores.
    """

    columns: Sequence[Any]

    def _draw(self, ax: Any) -> None:
        for shift, color, kind in ((-0.15, ORANGE, "training"), (0.15, BLUE, "new")):
            for height, column in enumerate(self.columns):
                one = getattr(column, kind)
                ax.hlines(height + shift, one.low, one.high, color=color, linewidth=2)
            label = "training encodings" if kind == "training" else "encodings of new rows"
            means = [getattr(column, kind).mean for column in self.columns]
            ax.scatter(means, [height + shift for height in range(len(means))], color=color, s=28, label=label)
        ax.axvline(0.5, color="black", linestyle="--", linewidth=1, label="chance")
        ax.set_yticks(range(len(self.columns)), [f"{shorten(one.name)}\n{one.verdict}" for one in self.columns])
        ax.invert_yaxis()
        ax.set(xlim=(0, 1.02), xlabel="ROC AUC of a small tree under shuffled targets")
        ax.legend(fontsize="small", loc="lower left")
