"""Engines whose rows have no order: what cannot be done there, and what to write."""


def repeated_names(engine: str, names: list[str]) -> ValueError:
    """Error for a table with several columns of one name."""
    repeated = sorted({name for name in names if names.count(name) > 1})
    return ValueError(f"X of {engine} has several columns named {repeated[0]!r}: rename all but one.")


def no_row_numbers(engine: str, scheme: object) -> ValueError:
    """Error for a scheme that asks for the numbers of rows, which have none."""
    or_dask = " Or give X.to_dask(), whose partitions have an order, to Dask on Ray." if engine == "Ray" else ""
    return ValueError(
        f"cv is {type(scheme).__name__}, which tells rows apart by their numbers, and rows of {engine} have none that "
        "would last: each pass may read them in other partitions. Say by which columns a row is known, one that is "
        'unique to each row best: cv=KFold(5, by="order_id"). Or name a column of fold numbers that is stored with the '
        'rows, cv="fold"; or take GroupKFold(groups=...), TimeFolds(time=...), Ordered(time=...), Holdout(mask=...) or '
        f"LeaveOneOut().{or_dask}"
    )


def not_added(engine: str, call: str) -> TypeError:
    """Error for a call that changes what is known by rows of an engine."""
    instead = {
        "partial_fit": "Fit another encoder of the same parameters and merge: encoder.merge(clone(encoder).fit(X, y)).",
        "forget": "Fit it anew to the rows that stay.",
    }
    return TypeError(f"{call} does not take rows of {engine}. {instead[call]}")


class NotShuffledError(ValueError):
    """Error for encodings that follow from more than the sums of single categories.

    Parameters
    ----------
    reason : str
        Why; the message says it as engines do.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f'tables="shuffle": {reason}. Or pass tables="broadcast".')
        self.reason = reason


def not_of_an_engine(X: object) -> TypeError:
    """Error for a table that lies in this process."""
    return TypeError(
        f"DistributedEncoder takes tables of Spark, Ray or Dask. Got a {type(X).__name__}: give it to the encoder "
        "itself."
    )
