"""Clusters of categories: the best partition if each category has one number, Ward's method if it has several."""
