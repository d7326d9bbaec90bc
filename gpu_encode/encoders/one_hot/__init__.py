"""A column of zeros and ones for each category."""

from gpu_encode.encoders.one_hot.columns import OneHotColumns

__all__ = ["OneHotColumns"]
