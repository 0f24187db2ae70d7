"""The load generator: bytes to chunks, connections, worker process."""
