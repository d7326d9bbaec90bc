"""Rows in parts are computed by the backend that is asked for."""

from tests.encoders.conftest import backend

__all__ = ["backend"]
