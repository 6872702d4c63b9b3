"""The specification's functions over Arrow columns."""
