"""Public address of the encoder for categories that fit no process: it lies in `gpu_encode.scale.engines`."""

from typing import TYPE_CHECKING

from gpu_encode.seam.loading import door_to

if TYPE_CHECKING:
    from gpu_encode.scale.engines import *  # noqa: F403
else:
    __getattr__ = door_to("gpu_encode.scale.engines")
