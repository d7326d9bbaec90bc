"""A number for each category, in an order."""
