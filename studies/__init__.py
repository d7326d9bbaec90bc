"""Studies: what was measured once to decide something, each with its command; CI does not run them."""
