"""The same clock and the same dice in every realm of a browser, while it is recorded and in a replay."""
