"""What each model API calls a message, a tool call, an answer and its usage.

Each module turns decoded JSON into the structs of `dialects.parts`. Input is whatever was recorded:
every lookup goes through `parts`, which gives None where the shape is another one.
"""
