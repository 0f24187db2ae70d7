"""The session folder: lock, journal, control socket, list."""
