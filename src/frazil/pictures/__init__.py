"""Figures as SVG and HTML text for notebooks and the console. All values are treated as untrusted."""
