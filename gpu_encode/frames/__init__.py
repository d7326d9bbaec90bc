"""Tables and vectors of every library: read into codes and arrays, and assembled again where they came from."""

from gpu_encode.frames.encoding import Keys
from gpu_encode.frames.frame import Frame
from gpu_encode.frames.on_device import to_host
from gpu_encode.frames.reading import read
from gpu_encode.frames.vectors import read_targets, read_vector

__all__ = ["Frame", "Keys", "read", "read_targets", "read_vector", "to_host"]
