"""The bar for bytes on their way."""

from __future__ import annotations

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from sparkserve.terminal import console


def bar(title: str) -> Progress:
    """A bar for one task. In a log it would be noise: a command says at its end what it did."""
    columns = (TextColumn(title), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    return Progress(*columns, console=console, disable=not console.is_terminal)
