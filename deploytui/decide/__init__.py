"""Accept, tune or reject, with reasons. Pure."""
