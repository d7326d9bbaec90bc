"""Messages of several exports: what cannot be exported, and what to do instead."""

from collections.abc import Sequence


def not_exact(what: str, column: str, target: str) -> TypeError:
    """Error for categories, encodings or levels that another engine cannot represent exactly."""
    return TypeError(
        f"{what} of column {column!r} cannot be exported to {target}. Make them text or numbers before fit, or encode "
        "the rows with gpu_encode."
    )


def cannot_refuse(target: str, columns: Sequence[str]) -> ValueError:
    """Error for the policy "error", if the target of an export cannot refuse rows."""
    key = repr(columns[0]) if len(columns) == 1 else repr(tuple(columns))
    return ValueError(
        f"{target} cannot refuse rows, and the encoder refuses unknown or missing values of {key}. Fit it with other "
        "policies (handle_unknown, handle_missing), and check for such rows before encoding."
    )


def tables_cannot_learn() -> TypeError:
    """Error for learning from rows, or for an export, with an encoder that has only encodings."""
    return TypeError(
        "An encoder made of tables holds encodings, and not the sums, which learning from more rows and exports need. "
        "Use the encoder from which the tables were made; save() keeps it."
    )


def not_installed(module: str, extra: str) -> ImportError:
    """Error for a library that an export needs."""
    return ImportError(f"{module} is not installed: pip install '.[{extra}]' in a checkout.")
