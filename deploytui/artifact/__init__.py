"""What a model is on disk, and where the embedded one comes from."""
