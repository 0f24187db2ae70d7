"""One screen a file, one stylesheet each."""
