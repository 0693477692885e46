"""A live run: the engine that decides, lanes, the gate, and the session that drives them."""
