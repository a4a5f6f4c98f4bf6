"""A line of small bars, as SVG that needs no script."""

from collections.abc import Sequence

from django.utils.html import format_html
from django.utils.safestring import SafeString

BAR, GAP, HEIGHT = 4, 1, 24
# So high that a bar of one is seen beside one of thousands.
LEAST = 2


def render_sparkline(counts: Sequence[int], title: str = "") -> SafeString:
    """Bars as high as the counts, the highest as high as the picture; `title` says in words what they show."""
    most = max(counts, default=0) or 1
    heights = [max(LEAST, round(HEIGHT * count / most)) if count else 0 for count in counts]
    bars = (
        f"M{place * (BAR + GAP)} {HEIGHT}v-{height}h{BAR}v{height}z"
        for place, height in enumerate(heights)
        if height
    )
    width = len(counts) * (BAR + GAP)
    return format_html(
        '<svg class="spark" role="img" width="{}" height="{}" viewBox="0 0 {} {}"><title>{}</title>'
        '<path d="{}"></path></svg>',
        *(width, HEIGHT, width, HEIGHT, title, "".join(bars)),
    )
