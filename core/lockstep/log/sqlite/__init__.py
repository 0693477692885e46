"""The embedded default store: one SQLite file."""
