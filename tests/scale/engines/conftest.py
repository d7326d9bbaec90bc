"""What tests of several files share."""

from tests.scale.engines.sessions import frame, spark

__all__ = ["frame", "spark"]
