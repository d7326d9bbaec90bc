"""Studies: measurements that were made once to decide something, each with its command; CI does not run them."""
