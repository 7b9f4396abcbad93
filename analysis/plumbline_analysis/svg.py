"""A matplotlib figure as one inline SVG element, fit for a page that holds several."""

from __future__ import annotations

import io
import re
from html import escape

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

FONT = "Inter, system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif"


def inline(figure: Figure, name: str, description: str) -> str:
    """The figure's ``<svg>``: scalable, its ids made unique by ``name``, with a text for readers
    who cannot see it. The ground is the page's. Same figure, same bytes: no date is written.
    """
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    plt.close(figure)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r' id="([^"]+)"', rf' id="{name}-\1"', text)
    text = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", text)
    text = re.sub(r'xlink:href="#([^"]+)"', rf'xlink:href="#{name}-\1"', text)
    text = re.sub(r"<svg([^>]*?) height=\"[^\"]+\"", r"<svg\1", text, count=1)
    text = re.sub(r"<svg([^>]*?) width=\"[^\"]+\"", r"<svg\1", text, count=1)
    text = re.sub(r"<svg([^>]*?) xmlns:xlink", r"<svg\1 xmlns:xlink", text, count=1)
    text = text.replace("'DejaVu Sans', sans-serif", FONT).replace(
        "DejaVu Sans", FONT.replace("'", "")
    )
    return text.replace("<svg", f'<svg role="img" aria-label="{escape(description)}"', 1)
