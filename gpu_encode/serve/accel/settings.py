"""What the user has chosen of `install`."""

from dataclasses import dataclass

from gpu_encode.words.annotations import Device

# Rows below which scikit-learn takes less time, measured by studies/accel.py.
FEWEST_ROWS = 20_000


@dataclass
class Settings:
    """How calls are served.

    Parameters
    ----------
    device : {"auto", "cpu", "cuda"}
        Where a target encoder's sums and training encodings are computed.
    fewest_rows : int
        Smaller tables are left to the library that was asked.
    """

    device: Device = "auto"
    fewest_rows: int = FEWEST_ROWS


SETTINGS = Settings()
