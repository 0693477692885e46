"""Taps: one module per source of non-determinism in any Python program.

Each has `install()` (patch once, inert without a session), `start(session)` and `stop(session)`.
"""
