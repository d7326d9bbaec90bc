"""Public address of pictures: they lie in `gpu_encode.study.plots`."""

from typing import TYPE_CHECKING

from gpu_encode.seam.loading import door_to

if TYPE_CHECKING:
    from gpu_encode.study.plots import *  # noqa: F403
else:
    __getattr__ = door_to("gpu_encode.study.plots")
