"""The requested backend computes rows in parts."""

from tests.encoders.conftest import backend

__all__ = ["backend"]
