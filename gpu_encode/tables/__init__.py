"""Tables and values in and out: frames of every library, and the distinct values of their columns."""
