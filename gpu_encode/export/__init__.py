"""A fitted encoder leaves: as SQL, ONNX, tables of Arrow, expressions of polars; the same bits, or an error."""
