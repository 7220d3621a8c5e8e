#!/usr/bin/env python3
"""Writes src/base/width_tables.inc: sorted ranges of code points, from Python's Unicode data.

kHidden  what display_text never shows: controls, format characters, separators of lines, fillers
kZero    takes no column: combining marks and what joins onto the character before it
kWide    takes two columns: East Asian wide and full-width

Run it by hand when a newer Unicode matters: tools/make_width_tables.py > src/base/width_tables.inc
"""

import unicodedata

# Invisible although they count as letters or marks: Hangul and Khmer fillers, the grapheme joiner,
# Mongolian selectors, the blank braille pattern.
FILLERS = {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F, 0x2800, 0x3164,
           0xFFA0}


def is_noncharacter(code):
    return 0xFDD0 <= code <= 0xFDEF or code & 0xFFFE == 0xFFFE


def is_hidden(code):
    category = unicodedata.category(chr(code))
    tags = 0xE0000 <= code <= 0xE0FFF
    return (category in ("Cc", "Cf", "Cs", "Zl", "Zp") or code in FILLERS or tags
            or is_noncharacter(code))


def is_zero(code):
    jamo = 0x1160 <= code <= 0x11FF
    return unicodedata.category(chr(code)) in ("Mn", "Me") or jamo


def is_wide(code):
    return unicodedata.east_asian_width(chr(code)) in ("W", "F")


def ranges(test):
    start = None
    for code in range(0x110001):
        inside = code < 0x110000 and test(code)
        if inside and start is None:
            start = code
        elif not inside and start is not None:
            yield (start, code - 1)
            start = None


def main():
    print("// Written by tools/make_width_tables.py from Unicode %s. Do not edit."
          % unicodedata.unidata_version)
    for name, test in (("kHidden", is_hidden), ("kZero", is_zero), ("kWide", is_wide)):
        print("constexpr Range %s[] = {" % name)
        line = "   "
        for low, high in ranges(test):
            item = " {0x%X, 0x%X}," % (low, high)
            if len(line) + len(item) > 100:
                print(line)
                line = "   "
            line += item
        print(line)
        print("};")


main()
