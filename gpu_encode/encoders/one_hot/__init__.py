"""A column of zeros and ones for each category."""

from gpu_encode.encoders.one_hot.columns import OneHotColumns
from gpu_encode.encoders.one_hot.inverse import original
from gpu_encode.formulas.one_hot import OneHot

__all__ = ["OneHot", "OneHotColumns", "original"]
