"""Clusters of categories: by one number the best partition, by several Ward's."""
