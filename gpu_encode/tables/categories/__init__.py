"""The distinct values of columns and keys, in a defined order; rows carry int32 codes."""
