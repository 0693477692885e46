"""HTTP clients: each is cut where it hands bytes to a connection, so that the client's behaviour stays its own."""
