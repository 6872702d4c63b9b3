"""The colours of pictures, light and dark, and the styles of notebook output. The console serves the same text."""

from __future__ import annotations

from typing import Final

from frazil.pictures.markup import Html, element, join

_LIGHT: Final = """
  --fz-ink: #17202c; --fz-muted: #5b6777; --fz-line: #dfe4ea; --fz-surface: #ffffff; --fz-sunk: #f3f5f8;
  --fz-accent: #0b6bcb; --fz-good: #14794f; --fz-warn: #9a5b00; --fz-bad: #c0322b;
  --fz-append: #2a7de1; --fz-overwrite: #d97a1d; --fz-delete: #cf4038; --fz-replace: #7b61d1; --fz-none: #93a0b0;
  --fz-kept: #14855a; --fz-metrics: #8db9ee; --fz-partition: #c3d9f4; --fz-summary: #e3e8ef;
  --fz-heat0: #cfe2f8; --fz-heat1: #f6dfae; --fz-heat2: #f3bf7a; --fz-heat3: #ea9257; --fz-heat4: #d9603f;
  --fz-cell: #17202c;
"""
_DARK: Final = """
  --fz-ink: #e4e9f0; --fz-muted: #95a3b5; --fz-line: #2a3443; --fz-surface: #151b24; --fz-sunk: #0f141b;
  --fz-accent: #69b1ff; --fz-good: #4cc38a; --fz-warn: #f0b45b; --fz-bad: #ff7a70;
  --fz-append: #4c9bf5; --fz-overwrite: #eb9a45; --fz-delete: #f0655c; --fz-replace: #9c86ee; --fz-none: #66748a;
  --fz-kept: #3bb37d; --fz-metrics: #3a6ea8; --fz-partition: #284a72; --fz-summary: #263140;
  --fz-heat0: #24405f; --fz-heat1: #5b4a1f; --fz-heat2: #7a5524; --fz-heat3: #94552c; --fz-heat4: #b04f38;
  --fz-cell: #e9eef5;
"""
STYLE: Final = (
    f":root, .fz {{{_LIGHT}}}\n"
    f"@media (prefers-color-scheme: dark) {{ :root:not([data-theme=light]) {{{_DARK}}} }}\n"
    f":root[data-theme=dark], [data-jp-theme-light=false] .fz, .vscode-dark .fz {{{_DARK}}}\n"
    """
.fz { color: var(--fz-ink); font: 13px/1.5 system-ui, sans-serif; max-width: 960px; }
.fz h4 { margin: 0.4em 0; font-size: 15px; }
.fz table { border-collapse: collapse; font-size: 12.5px; }
.fz th, .fz td { padding: 3px 10px; text-align: left; border-bottom: 1px solid var(--fz-line); }
.fz .fz-number { text-align: right; font-variant-numeric: tabular-nums; }
.fz code { font-size: 12px; }
.fz-plot { display: block; width: 100%; height: auto; }
.fz-muted, .fz-tick { color: var(--fz-muted); fill: var(--fz-muted); }
.fz-tick, .fz-cell { font: 11px system-ui, sans-serif; font-variant-numeric: tabular-nums; }
.fz-cell { fill: var(--fz-cell); pointer-events: none; }
.fz-grid { stroke: var(--fz-line); stroke-width: 1; shape-rendering: crispEdges; }
.fz-line { fill: none; stroke: var(--fz-accent); stroke-width: 1.75; stroke-linejoin: round; }
.fz-area { fill: var(--fz-accent); opacity: 0.13; }
.fz-dot { stroke: var(--fz-surface); stroke-width: 1.2; }
.fz-node { stroke: var(--fz-surface); stroke-width: 1.5; }
.fz-ring { fill: none; stroke: var(--fz-accent); stroke-width: 2; }
.fz-lanes { display: block; }
.fz-lane { fill: none; stroke-width: 2; }
.fz-lane0 { stroke: var(--fz-append); } .fz-lane1 { stroke: var(--fz-overwrite); }
.fz-lane2 { stroke: var(--fz-replace); } .fz-lane3 { stroke: var(--fz-good); }
.fz-lane4 { stroke: var(--fz-delete); } .fz-lane5 { stroke: var(--fz-none); }
"""
    + "".join(
        f".fz-{name} {{ fill: var(--fz-{name}); background: var(--fz-{name}); }}\n"
        for name in (
            *("append", "overwrite", "delete", "replace", "none", "kept", "metrics", "partition", "summary"),
            *("heat0", "heat1", "heat2", "heat3", "heat4"),
        )
    )
    + """
.fz-rest { fill: var(--fz-summary); background: var(--fz-summary); }
.fz-legend { display: flex; flex-wrap: wrap; gap: 4px 18px; list-style: none; margin: 8px 0 14px; padding: 0;
  font-size: 12.5px; }
.fz-key { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right: 6px; }
a:hover > rect, a:focus > rect { stroke: var(--fz-accent); stroke-width: 2; }
"""
)
OPERATIONS: Final = ("append", "overwrite", "delete", "replace")


def operation_kind(operation: str | None) -> str:
    """Return the class of colour of a snapshot's operation."""
    return operation if operation in OPERATIONS else "none"


def in_notebook(*parts: object) -> str:
    """Wrap parts as the output of a notebook cell."""
    return str(element("div", element("style", Html(STYLE)), join(parts), class_="fz"))
