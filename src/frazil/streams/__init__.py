"""Tables as streams: offsets, the files of each step, and the schemas of both."""
