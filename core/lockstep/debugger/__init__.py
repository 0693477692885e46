"""What people do with a run: look at it, replay it, verify it."""
