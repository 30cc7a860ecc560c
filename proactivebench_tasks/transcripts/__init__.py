"""What is written down of an episode, and what a task's YAML asked for."""
