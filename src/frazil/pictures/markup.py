"""Elements of HTML and SVG as text. Everything that was not created here is escaped: names and values are untrusted.

`Html` has `__html__`, so that template engines do not escape it, and `_repr_html_`, so that notebooks display it.
"""

from __future__ import annotations

from html import escape
from typing import Final

from frazil.visible_text import visible


class Html(str):
    """Text that is already markup."""

    __slots__ = ()

    def __html__(self) -> Html:
        """Return itself, for template engines."""
        return self

    def _repr_html_(self) -> str:
        return str(self)


NOTHING: Final = Html("")


def text(value: object) -> Html:
    """Return a value as markup: `Html` unchanged, other values escaped, with control characters written out."""
    return value if isinstance(value, Html) else Html(escape(visible(str(value), keeps_lines=True)))


def element(name: str, *children: object, **attributes: object) -> Html:
    """Return an element. Attributes that are None are omitted; `_` in names stands for `-`, and ends `class_`."""
    attribute_text = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(number(value) if isinstance(value, float) else value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = join(children)
    if not inside and name in ("rect", "path", "line", "circle", "col", "br"):
        return Html(f"<{name}{attribute_text}/>")
    return Html(f"<{name}{attribute_text}>{inside}</{name}>")


def join(children: object) -> Html:
    """Concatenate elements and texts."""
    pieces = children if isinstance(children, list | tuple) else [children]
    return Html("".join(text(piece) for piece in pieces if piece is not None))


def svg(width: float, height: float, label: str, *children: object, class_: str = "fz-plot") -> Html:
    """Return a picture with a label for screen readers."""
    return element(
        "svg",
        *children,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {number(width)} {number(height)}",
        width=width,
        height=height,
        role="img",
        aria_label=label,
        class_=class_,
    )


def number(value: float) -> str:
    """Format a coordinate as short text."""
    return f"{value:.1f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
