"""Pictures with known content, as PNG: colour fields, counted squares, digits of a tiny font. Pure."""

from __future__ import annotations

import base64
import struct
import zlib

Colour = tuple[int, int, int]
COLOURS: dict[str, Colour] = {
    "red": (220, 30, 30),
    "green": (20, 150, 40),
    "blue": (30, 60, 210),
    "yellow": (245, 215, 20),
    "black": (10, 10, 10),
    "white": (250, 250, 250),
}
# Five rows of three points each, as bits: the left one is 4.
DIGITS = (
    (7, 5, 5, 5, 7), (2, 6, 2, 2, 7), (7, 1, 7, 4, 7), (7, 1, 7, 1, 7), (5, 5, 7, 1, 1),
    (7, 4, 7, 1, 7), (7, 4, 7, 5, 7), (7, 1, 1, 2, 2), (7, 5, 7, 5, 7), (7, 5, 7, 1, 7),
)  # fmt: skip


class Picture:
    """`width` x `height` points of one colour, to draw on."""

    def __init__(self, width: int, height: int, colour: Colour) -> None:
        self.width, self.height = width, height
        self.rows = [[colour] * width for _ in range(height)]

    def box(self, left: int, top: int, width: int, height: int, colour: Colour) -> None:
        """Fill a rectangle, as far as it is in the picture."""
        for row in self.rows[top : top + height]:
            row[left : left + width] = [colour] * len(row[left : left + width])

    def number(self, text: str, left: int, top: int, size: int, colour: Colour) -> None:
        """Write digits, each point a square of `size`."""
        for place, digit in enumerate(text):
            for y, bits in enumerate(DIGITS[int(digit)]):
                for x in range(3):
                    if bits & 4 >> x:
                        self.box(left + (4 * place + x) * size, top + y * size, size, size, colour)

    def png(self) -> bytes:
        """The file: eight bits a channel, no filter."""
        raw = b"".join(b"\0" + bytes(value for point in row for value in point) for row in self.rows)
        header = struct.pack(">IIBBBBB", self.width, self.height, 8, 2, 0, 0, 0)
        chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(raw, 9)), (b"IEND", b""))
        return b"\x89PNG\r\n\x1a\n" + b"".join(
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
            for name, data in chunks
        )

    def url(self) -> str:
        """As the chat API takes it."""
        return "data:image/png;base64," + base64.b64encode(self.png()).decode()
