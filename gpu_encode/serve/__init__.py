"""Guest: a fitted encoder elsewhere, as an export or in place of another library's encoder."""
