"""Workflows whose replays are looked at, each with what today's code may have made of it.

The recorded ones are `recorded.Order` and others of `FIRST`; `VARIANTS` are what they have become.
"""
