"""The user's rules: which categories get a column."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cpu_fallback.exact import Floats
from gpu_encode.formulas.infrequent import check_rule
from gpu_encode.formulas.statistic import Context, Statistic
from gpu_encode.sums.moments import Moments
from gpu_encode.words.errors.parameters import check_option

OWNER = "OneHotEncoder"
UNKNOWN_POLICIES = ("error", "ignore", "infrequent_if_exist", "warn")
MISSING_POLICIES = ("category", "zero", "error")


@dataclass(eq=False, repr=False)
class OneHot(Statistic):
    """The summed weight n of a category, and the rules that decide by these weights which category gets a column.

    Parameters
    ----------
    drop : {"first", "if_binary"}, list or tuple, optional
        A list has one category for each key; a tuple holds the category of a single key.
    handle_unknown : {"error", "ignore", "infrequent_if_exist", "warn"}, default="error"
    handle_missing : {"category", "zero", "error"}, default="category"
    """

    drop: Any = None
    min_frequency: Any = None
    max_categories: int | None = None
    handle_unknown: str = "error"
    handle_missing: str = "category"

    def check(self) -> None:
        """Raise ValueError for unknown options and numbers out of range."""
        check_option(OWNER, "handle_unknown", self.handle_unknown, UNKNOWN_POLICIES)
        check_option(OWNER, "handle_missing", self.handle_missing, MISSING_POLICIES)
        if not isinstance(self.drop, (list, tuple)):
            instead = "a list of categories", "a dict of one per column"
            check_option(OWNER, "drop", self.drop, (None, "first", "if_binary"), *instead)
        check_rule(OWNER, self.min_frequency, self.max_categories)

    @property
    def unknown_is_infrequent(self) -> bool:
        """Whether an unknown value is encoded as the infrequent categories are, if there are any."""
        return self.handle_unknown in ("infrequent_if_exist", "warn")

    def n_outputs(self, n_targets: int) -> int:
        """Give one column, whatever the target."""
        return 1

    def encode(self, visible: Moments, context: Context, prior: Floats) -> Floats:
        """Give n."""
        return visible.n


def list_dropped(drop: Any) -> Any:
    """Give the categories to drop as a list; the name of a rule, None and a dict stay as they are."""
    return list(drop) if hasattr(drop, "__len__") and not isinstance(drop, (str, Mapping)) else drop
