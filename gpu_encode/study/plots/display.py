"""The base of all displays: the axes, and the picture in a notebook."""

from io import BytesIO
from typing import Any, Self

# Colours that colour-blind people can tell apart (Okabe and Ito).
BLUE, ORANGE, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "#777777"


class Display:
    """A picture that is drawn into axes."""

    ax_: Any
    figure_: Any

    def _draw(self, ax: Any) -> None:
        raise NotImplementedError

    def plot(self, ax: Any = None) -> Self:
        """Draw the picture.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a figure of its own.

        Returns
        -------
        self
            With the attributes `ax_` and `figure_`.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        self.ax_ = new_axes() if ax is None else ax
        self.figure_ = self.ax_.figure
        self._draw(self.ax_)
        return self

    def _repr_png_(self) -> bytes:
        if not hasattr(self, "figure_"):
            self.plot()
        picture = BytesIO()
        self.figure_.savefig(picture, format="png")
        return picture.getvalue()


def new_axes() -> Any:
    """Make axes in a figure that pyplot does not know."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("matplotlib draws the pictures: pip install '.[plot]' in a checkout.") from error
    return Figure(figsize=(6, 4), dpi=100, layout="constrained").add_subplot()


def shorten(value: object, most: int = 18) -> str:
    r"""Write a value as a short label, in which matplotlib finds no formulas.

    Examples
    --------
    >>> shorten(None), shorten("a" * 30)
    ('missing', 'aaaaaaaaaaaaaaaaa…')
    >>> print(shorten("cost_$_to_$"))
    cost_\$_to_\$
    """
    text = "missing" if value is None else str(value)
    # matplotlib reads the text between two dollar signs as TeX.
    return (text if len(text) <= most else f"{text[: most - 1]}…").replace("$", r"\$")
