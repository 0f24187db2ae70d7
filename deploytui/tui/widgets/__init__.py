"""Small widgets, each shows one value."""
