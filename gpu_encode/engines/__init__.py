"""Engines whose rows have no order: Spark and Ray.  A row is known by its values, never by where it lies.

Encoders hand over to these modules where X is a table of such an engine.
"""
