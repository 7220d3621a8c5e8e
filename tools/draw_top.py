#!/usr/bin/env python3
"""Draws what `gpurota top` shows as an SVG picture.

The text is one that the tests of `gpurota top` compare with the program's (src/cli/testdata/top).

    tools/draw_top.py           writes docs/images/top.svg
    tools/draw_top.py --check   says whether that file is what would be written
"""

import html
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
TEXT = os.path.join(ROOT, "src", "cli", "testdata", "top", "server-132x40.txt")
PICTURE = os.path.join(ROOT, "docs", "images", "top.svg")
COLUMN, LINE, MARGIN = 7.2, 16, 14
# Each piece of a line has the colour of the first pattern that matches it, as on a terminal.
COLOURS = [(r"NO LEASE|×+", "#ff8a80"), (r"\bheld\b|kept for R\d+", "#f0b860"),
           (r"\bfree\b", "#6fcf97"), (r"[█▁▂▃▄▅▆▇]+", "#6aa5f8"), (r"[░·]+", "#98a6b6")]
HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" \
aria-label="gpurota top">
<rect width="100%%" height="100%%" rx="6" fill="#0d1218"/>
<g font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="12">"""
PIECE = ('<text x="%.1f" y="%d" textLength="%.1f" lengthAdjust="spacingAndGlyphs" '
         'fill="%s">%s</text>')


def colour_pieces(line):
    """(column, text, colour) of each piece of a line."""
    pattern = re.compile("|".join("(%s)" % each for each, _ in COLOURS))
    at = 0
    for found in pattern.finditer(line):
        yield at, line[at:found.start()], "#e4eaf1"
        yield found.start(), found.group(), COLOURS[found.lastindex - 1][1]
        at = found.end()
    yield at, line[at:], "#e4eaf1"


def svg_of(text):
    # Removes the empty lines that fill up the window.
    lines = re.sub(r"\n{3,}", "\n\n", text).rstrip("\n").split("\n")
    width = round(2 * MARGIN + COLUMN * max(map(len, lines)))
    height = 2 * MARGIN + LINE * len(lines)
    out = [HEAD % (width, height)]
    for row, line in enumerate(lines):
        for column, piece, colour in colour_pieces(line):
            if not piece.strip():
                continue
            column += len(piece) - len(piece.lstrip())
            # A browser would collapse several spaces into one.
            piece = piece.strip().replace(" ", "\u00a0")
            out.append(PIECE % (MARGIN + COLUMN * column, MARGIN + LINE * row + 12,
                                COLUMN * len(piece), colour, html.escape(piece)))
    return "\n".join(out + ["</g>", "</svg>", ""])


def main(arguments):
    with open(TEXT, encoding="utf-8") as file:
        picture = svg_of(file.read())
    if arguments == ["--check"]:
        with open(PICTURE, encoding="utf-8") as file:
            if file.read() != picture:
                sys.exit("docs/images/top.svg is not what gpurota top shows: tools/draw_top.py")
        return 0
    if arguments:
        sys.exit(__doc__)
    os.makedirs(os.path.dirname(PICTURE), exist_ok=True)
    with open(PICTURE, "w", encoding="utf-8") as file:
        file.write(picture)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
