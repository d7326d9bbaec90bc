"""Tables and vectors of every library: read into codes and arrays, and assembled again where they came from."""

from gpu_encode.frames.device_vectors import NumberedLabels
from gpu_encode.frames.encoding import Keys
from gpu_encode.frames.frame import Frame
from gpu_encode.frames.on_device import to_host
from gpu_encode.frames.piece_vectors import PieceVectors, in_line, on_host
from gpu_encode.frames.pieces import Pieces, part_with, parts_of, read_pieces, tables_of
from gpu_encode.frames.reading import read
from gpu_encode.frames.vectors import read_grouping, read_targets, read_vector, targets_on_host

__all__ = [
    "Frame",
    "Keys",
    "NumberedLabels",
    "PieceVectors",
    "Pieces",
    "in_line",
    "on_host",
    "part_with",
    "parts_of",
    "read",
    "read_grouping",
    "read_pieces",
    "read_targets",
    "read_vector",
    "tables_of",
    "targets_on_host",
    "to_host",
]
