"""Measurements of the tool itself, each beside a yardstick in the same run."""
