"""What tests of several files share."""

from tests.engines.sessions import frame, spark

__all__ = ["frame", "spark"]
