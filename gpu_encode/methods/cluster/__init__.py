"""Clusters of categories: the best partition if categories have one number, Ward's method if they have several."""
