"""Turns what a terminal shows, with its SGR sequences, into an SVG picture.

Reads standard input, as from `tmux capture-pane -p -e`; the argument is the
window's title. Needs no more than Python.
"""

import re
import sys
import unicodedata
from xml.sax.saxutils import escape

CELL, LINE, BASE, EDGE, BAR = 8.4, 19, 14, 14, 34
PAPER, INK, FRAME = "#15181e", "#d5d9e0", "#272c36"
DIM = "#7d8694"
COLOURS = {31: "#ef6b73", 32: "#7cc47f", 33: "#e3b341", 34: "#6ea8fe", 35: "#c792ea"}
SGR = re.compile(r"\x1b\[([0-9;]*)m")


class Style:
    """How text looks that follows."""

    def __init__(self):
        self.bold = self.dim = self.reverse = False
        self.colour = None

    def take(self, codes):
        for code in codes:
            if code == 0:
                self.__init__()
            elif code == 1:
                self.bold = True
            elif code == 2:
                self.dim = True
            elif code == 7:
                self.reverse = True
            elif code == 39:
                self.colour = None
            elif code in COLOURS:
                self.colour = COLOURS[code]
            elif code != 49:
                raise SystemExit(f"svg.py: SGR {code} is not known")

    def ink(self):
        return self.colour or (DIM if self.dim else INK)


def width(text):
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(bool(unicodedata.combining(c)) for c in text)


def runs(line, style):
    """The pieces of a line: column, text, and how it looks."""
    column = 0
    for at, piece in enumerate(SGR.split(line)):
        if at % 2:
            style.take(int(code or 0) for code in piece.split(";"))
        elif piece:
            yield column, piece, style.ink(), style.bold, style.reverse
            column += width(piece)


def svg(lines, title):
    style = Style()
    rows = [list(runs(line, style)) for line in lines]
    columns = max((at + width(text) for row in rows for at, text, *_ in row), default=1)
    wide, high = columns * CELL + 2 * EDGE, len(rows) * LINE + BAR + EDGE
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide:.0f}" height="{high}"'
        f' viewBox="0 0 {wide:.0f} {high}" role="img" aria-label="{escape(title)}">'
    )
    yield f'<rect width="100%" height="100%" rx="8" fill="{PAPER}"/>'
    yield f'<path d="M0 8a8 8 0 0 1 8-8h{wide - 16:.0f}a8 8 0 0 1 8 8v18H0z" fill="{FRAME}"/>'
    yield (
        '<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,DejaVu Sans Mono,monospace"'
        ' font-size="14" xml:space="preserve">'
    )
    yield (
        f'<text x="{wide / 2:.0f}" y="18" text-anchor="middle" font-size="12"'
        f' fill="{DIM}">{escape(title)}</text>'
    )
    for number, row in enumerate(rows):
        top = BAR + number * LINE
        for at, text, ink, bold, reverse in row:
            if reverse:
                yield (
                    f'<rect x="{EDGE + at * CELL:.1f}" y="{top}" width="{width(text) * CELL:.1f}"'
                    f' height="{LINE}" fill="{ink}"/>'
                )
                ink = PAPER
            # Word by word, so that columns stand even in a font of another width.
            for word in re.finditer(r"\S+(?: \S+)*", text):
                weight = ' font-weight="bold"' if bold else ""
                left = EDGE + (at + width(text[: word.start()])) * CELL
                yield (
                    f'<text x="{left:.1f}" y="{top + BASE}" fill="{ink}"{weight}'
                    f' textLength="{width(word[0]) * CELL:.1f}" lengthAdjust="spacingAndGlyphs">'
                    f"{escape(word[0])}</text>"
                )
    yield "</g></svg>"


def main():
    lines = sys.stdin.read().split("\n")
    while lines and not SGR.sub("", lines[-1]).strip():
        lines.pop()
    print("\n".join(svg(lines, sys.argv[1])))


main()
