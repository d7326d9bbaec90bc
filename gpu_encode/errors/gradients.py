"""Gradients and hessians that are none."""

from gpu_encode.errors.rows import RowError


def not_gradients_and_hessians(n_targets: int) -> ValueError:
    """Error for a target of other columns than two."""
    return ValueError(
        f"GradientEncoder needs y of two columns, the gradient and the hessian of each row's loss, but y has "
        f"{n_targets}. Pass np.column_stack([gradient, hessian]), or a frame of both; the hessian of squared error is "
        "1."
    )


def negative_hessian(row: int, found: object) -> RowError:
    """Error for a loss that bends down."""
    return RowError(
        f"Hessians (the second column of GradientEncoder's y) must be at least 0. Got {found!r} in row ",
        row,
        ". Are gradients and hessians swapped?",
    )
