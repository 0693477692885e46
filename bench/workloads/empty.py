"""Nothing: what a program costs before it does anything."""
