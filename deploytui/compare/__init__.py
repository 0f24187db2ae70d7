"""Which records may be compared, and how far they differ. Pure."""
