"""The runner: walks the plan, owns every process, writes the journal."""
