"""The recorded network of a browser, in the place of the real one."""
