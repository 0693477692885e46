"""The same clock, dice and sockets in every realm of a browser, while it is recorded and in a replay."""
