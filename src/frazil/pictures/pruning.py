"""The files that a plan pruned, and why, as a picture: all files as one bar, and a bar for each manifest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from frazil.pictures.markup import Html, element, join, svg
from frazil.pictures.words import show_count

WIDTH: Final = 1160.0
MAX_MANIFESTS: Final = 60
KINDS: Final = (
    ("kept", "read"),
    ("metrics", "pruned by column bounds"),
    ("partition", "pruned by partition value"),
    ("summary", "in manifests pruned by partition summary"),
)
"""The kinds of files in a plan: the class of their colour, and their description."""


@dataclass(frozen=True, slots=True)
class PrunedManifest:
    """One manifest of a plan: the number of its files of each kind."""

    name: str
    kept: int = 0
    metrics: int = 0
    partition: int = 0
    summary: int = 0

    @property
    def files(self) -> int:
        """The number of its files."""
        return self.kept + self.metrics + self.partition + self.summary


def draw_pruning(manifests: Sequence[PrunedManifest]) -> Html:
    """Draw all files as one bar, a legend, and below it the manifests one by one."""
    total = PrunedManifest("all", *(sum(getattr(manifest, reason) for manifest in manifests) for reason, _ in KINDS))
    if total.files == 0:
        return element("p", "There are no files to choose from.", class_="fz-muted")
    note = ", ".join(f"{show_count(getattr(total, reason))} {what}" for reason, what in KINDS if getattr(total, reason))
    overall = svg(
        WIDTH, 26.0, f"{show_count(total.files)} files: {note}", *_bar(total, 0.0, WIDTH, 0.0, 26.0, least=2.0)
    )
    legend = element(
        "ul",
        *(
            element(
                "li",
                element("span", "", class_=f"fz-key fz-{reason}"),
                element("strong", show_count(getattr(total, reason))),
                f" {what}",
            )
            for reason, what in KINDS
        ),
        class_="fz-legend",
    )
    return join([overall, legend, _manifests(manifests)])


def _manifests(manifests: Sequence[PrunedManifest]) -> Html:
    listed = sorted(manifests, key=lambda manifest: (-manifest.kept, -manifest.files))[:MAX_MANIFESTS]
    rest = len(manifests) - len(listed)
    widest = max(listed_manifest.files for listed_manifest in listed) or 1
    row, left = 20.0, 330.0
    parts = []
    for index, pruned_manifest in enumerate(listed):
        top = index * row
        name = pruned_manifest.name if len(pruned_manifest.name) <= 50 else "…" + pruned_manifest.name[-49:]
        share = (WIDTH - left - 110) * pruned_manifest.files / widest
        note = ", ".join(
            f"{show_count(getattr(pruned_manifest, reason))} {what}"
            for reason, what in KINDS
            if getattr(pruned_manifest, reason)
        )
        parts.append(
            element(
                "g",
                element("title", f"{pruned_manifest.name}\n{show_count(pruned_manifest.files)} files: {note}"),
                element("text", name, x=left - 10, y=top + 14, text_anchor="end", class_="fz-tick"),
                *_bar(pruned_manifest, left, max(share, 2.0), top + 3, row - 6),
                element(
                    "text",
                    f"{show_count(pruned_manifest.kept)} / {show_count(pruned_manifest.files)}",
                    x=left + max(share, 2.0) + 8,
                    y=top + 14,
                    class_="fz-tick",
                ),
            )
        )
    label = f"{len(manifests):,} manifests, those with most files to read first"
    picture = svg(WIDTH, max(len(listed) * row, row), label, *parts)
    more = element("p", f"… and {rest:,} more manifests.", class_="fz-muted") if rest > 0 else None
    return join([picture, more])


def _bar(
    pruned_manifest: PrunedManifest, x: float, width: float, y: float, height: float, *, least: float = 0.75
) -> list[Html]:
    parts = []
    for reason, _ in KINDS:
        count = getattr(pruned_manifest, reason)
        if count:
            share = max(width * count / pruned_manifest.files, least)
            parts.append(element("rect", x=x, y=y, width=share, height=height, class_=f"fz-{reason}"))
            x += share
    return parts
