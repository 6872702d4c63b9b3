"""The metadata tables: contents of a table's metadata, manifest lists, manifests and delete files, as Arrow."""
