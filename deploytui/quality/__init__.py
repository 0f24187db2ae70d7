"""Fixed tasks and the checkers that score the answers."""
