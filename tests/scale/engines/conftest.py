"""Fixtures that several files of this folder use."""

from tests.scale.engines.sessions import frame, spark

__all__ = ["frame", "spark"]
