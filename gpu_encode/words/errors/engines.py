"""Engines whose rows have no order: what cannot be done there, and what to write."""


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
