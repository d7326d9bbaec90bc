"""Read tables and vectors of every library into codes and arrays, and make tables of the same libraries again."""

from gpu_encode.tables.frames.columns import load_what_arrays_need
from gpu_encode.tables.frames.device_columns import to_host
from gpu_encode.tables.frames.device_vectors import Incomplete, NumberedLabels
from gpu_encode.tables.frames.frame import Frame, engine_holding, is_collection, is_partitioned, of_columns, read, take
from gpu_encode.tables.frames.pieces import Pieces, concatenate, part_with, read_pieces, tables_of, with_piece
from gpu_encode.tables.frames.vectors import (
    PieceVectors,
    in_line,
    move_to_reader,
    on_host,
    read_grouping,
    read_targets,
    read_vector,
    sum_is_finite,
)

__all__ = [
    "Frame",
    "Incomplete",
    "NumberedLabels",
    "PieceVectors",
    "Pieces",
    "concatenate",
    "engine_holding",
    "in_line",
    "is_collection",
    "is_partitioned",
    "load_what_arrays_need",
    "move_to_reader",
    "of_columns",
    "on_host",
    "part_with",
    "read",
    "read_grouping",
    "read_pieces",
    "read_targets",
    "read_vector",
    "sum_is_finite",
    "tables_of",
    "take",
    "to_host",
    "with_piece",
]
