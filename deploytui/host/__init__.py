"""Scripts run by path in any interpreter; they import nothing of ours."""
