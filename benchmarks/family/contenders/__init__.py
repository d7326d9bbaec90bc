"""Who is compared, a library a file."""
