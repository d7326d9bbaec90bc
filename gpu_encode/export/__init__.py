"""A fitted encoder leaves: as SQL, ONNX, tables of Arrow, expressions of polars; the same bits, or an error."""

from gpu_encode.export.arrow import to_arrow
from gpu_encode.export.polars_expressions import to_polars
from gpu_encode.export.table_encoder import from_arrow

__all__ = ["from_arrow", "to_arrow", "to_polars"]
