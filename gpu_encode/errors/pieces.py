"""Lists of tables that are no table in pieces, and vectors that do not match the tables."""

from collections.abc import Sequence


def no_tables(type_name: str) -> ValueError:
    """Error for a list or iterator that holds nothing."""
    return ValueError(
        f"X is an empty {type_name}. Give a table with rows, or a list or iterator of at least one table."
    )


def not_a_table(number: int, type_name: str) -> TypeError:
    """Error for something else among tables."""
    return TypeError(
        f"X[{number}] is no table: a {type_name}. In a list or iterator of tables each must be a frame or an array of "
        "two dimensions; rows may come as a list of lists."
    )


def in_piece(role: str, number: int, error: Exception) -> Exception:
    """Give the error that one table of several raised, with the number of the table; rows in it are the table's."""
    kind = TypeError if isinstance(error, TypeError) else ValueError
    return kind(f"{role}[{number}]: {error}")


def columns_of_piece(number: int, first: object, found: object) -> ValueError:
    """Error for a table whose columns are not those of the first."""
    return ValueError(
        f"X[{number}] has the columns {found}, but X[0] has {first}. "
        "All tables must have the same columns in the same order."
    )


def uneven_pieces(role: str, n_vectors: int, n_tables: int) -> ValueError:
    """Error for vectors that are not one per table."""
    return ValueError(
        f"{role} holds {n_vectors} vectors for the {n_tables} tables of X. "
        "Give one per table, or one vector for all rows."
    )


def length_of_piece(role: str, number: int, n_rows: int, length: int) -> ValueError:
    """Error for a vector that does not match its table, worded as scikit-learn does."""
    return ValueError(
        f"Found input variables with inconsistent numbers of samples: {[n_rows, length]}. "
        f"X[{number}] has {n_rows} rows and {role}[{number}] {length}; "
        "rows match by position, so give one value per row."
    )


def targets_of_piece(number: int, first: Sequence[object], found: Sequence[object]) -> ValueError:
    """Error for a table of targets whose columns are not those of the first."""
    return ValueError(
        f"y[{number}] has {_targets(found)}, but y[0] has {_targets(first)}. "
        "All must have the same targets in the same order."
    )


def _targets(names: Sequence[object]) -> str:
    return f"{len(names)} targets" if None in names else f"the targets {list(names)}"
