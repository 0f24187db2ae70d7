"""How each engine is found, launched, asked and understood."""
