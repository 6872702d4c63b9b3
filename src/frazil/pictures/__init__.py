"""Figures as SVG and HTML text: what notebooks and the console show. No value here is trusted to be harmless."""
