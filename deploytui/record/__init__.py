"""What happened in a session: events, their fold, and the numbers. Pure."""
