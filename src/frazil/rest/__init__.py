"""Catalogs that are services: the REST protocol's client."""
