"""Categories without a column, and containers that cannot hold columns of zeros and ones."""
