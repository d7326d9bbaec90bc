"""The backends on which encoders compute: those of tests/family."""

from tests.family.conftest import backend

__all__ = ["backend"]
