"""The metadata tables: what a table's metadata, manifest lists, manifests and delete files say, as Arrow."""
