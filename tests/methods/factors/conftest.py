"""Where encoders compute: as in the family."""

from tests.family.conftest import backend

__all__ = ["backend"]
