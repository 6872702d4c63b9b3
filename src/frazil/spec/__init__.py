"""Values of the specification: frozen, typed, without I/O, bytes or Arrow."""
