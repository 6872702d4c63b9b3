"""The REST protocol's client: catalogs that are services."""
