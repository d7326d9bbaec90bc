"""The user's choices in `install`."""

from dataclasses import dataclass

from gpu_encode.words.annotations import Device

# With fewer rows scikit-learn is faster, as studies/accel.py has measured.
FEWEST_ROWS = 20_000


@dataclass
class Settings:
    """How calls are served.

    Parameters
    ----------
    device : {"auto", "cpu", "cuda"}
        Where a target encoder's sums and training encodings are computed.
    fewest_rows : int
        Smaller tables are left to the original library.
    """

    device: Device = "auto"
    fewest_rows: int = FEWEST_ROWS


SETTINGS = Settings()
