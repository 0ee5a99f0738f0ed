"""Reading a stretch of a file from front to back, always knowing where."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from initadvisor.core.errors import BadImageError

if TYPE_CHECKING:
    from typing import IO


CHUNK_BYTES = 4 << 20
"""How much is read or unpacked at a time."""

_ZEROS = bytes(1 << 16)


class Reader:
    """The bytes of ``file`` from ``position`` up to ``end``; the file must be seekable.

    Every method may be mixed with others that use the same file: each read seeks first.
    """

    def __init__(self, file: IO[bytes], start: int, end: int) -> None:
        self.position = start
        self.end = end
        self.file = file

    @property
    def left(self) -> int:
        """How many bytes are left."""
        return self.end - self.position

    def read(self, limit: int = CHUNK_BYTES) -> bytes:
        """Return up to ``limit`` bytes and move on; empty at the end."""
        data = self.peek(limit)
        self.position += len(data)
        return data

    def peek(self, limit: int) -> bytes:
        """Return what ``read`` would, without moving on."""
        self.file.seek(self.position)
        return self.file.read(min(limit, self.left))

    def exactly(self, count: int, what: str) -> bytes:
        """Return ``count`` bytes and move on.

        Raises ``BadImageError`` where there are fewer; ``what`` says what they should have been.
        """
        data = self.read(count) if count <= self.left else b""
        if len(data) != count:
            self.fail_truncated(what)
        return data

    def fail_truncated(self, what: str) -> NoReturn:
        """Raise the error for a file that ends inside ``what``."""
        msg = f"truncated: the data ends inside {what},"
        raise BadImageError(msg, offset=self.position)

    def skip_zeros(self, limit: int) -> int:
        """Move past zero bytes and return how many; stop soon after ``limit`` of them."""
        start = self.position
        while self.left and self.position - start <= limit:
            data = self.read(len(_ZEROS))
            if data == _ZEROS[: len(data)]:
                continue
            self.position -= len(data.lstrip(b"\0"))
            break
        return self.position - start
