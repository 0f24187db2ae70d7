"""What is to be done: cases, steps, prompts, the workload key. Pure."""
