"""TOML in, profiles out: the schema, its errors, its files."""
