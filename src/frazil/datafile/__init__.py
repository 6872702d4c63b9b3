"""Data and delete files as Arrow, one file at a time, on the driver or on an executor."""
