"""Public address of the steps for rows in parts: they lie in `gpu_encode.scale.parts`."""

from typing import TYPE_CHECKING

from gpu_encode.seam.loading import door_to

if TYPE_CHECKING:
    from gpu_encode.scale.parts import *  # noqa: F403
else:
    __getattr__ = door_to("gpu_encode.scale.parts")
