"""Playwright in a run of a session: its conversation with the driver is the process's, which the core records and
serves. Here is what that means: messages in place of bytes, and actions as steps."""
