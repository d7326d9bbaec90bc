"""Guest: a fitted encoder used elsewhere, as an export or in place of another library's encoder."""
