"""One file at a time, as Arrow: reading data and delete files, on a driver or on an executor."""
