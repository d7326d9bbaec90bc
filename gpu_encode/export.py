"""Public address of exports of fitted encoders: they lie in `gpu_encode.serve.export`."""

from typing import TYPE_CHECKING

from gpu_encode.seam.loading import door_to

if TYPE_CHECKING:
    from gpu_encode.serve.export import *  # noqa: F403
else:
    __getattr__ = door_to("gpu_encode.serve.export")
