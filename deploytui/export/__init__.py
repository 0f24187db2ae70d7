"""Results out: JSON, saved profiles."""
