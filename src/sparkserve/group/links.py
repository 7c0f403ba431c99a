"""Whether the node's cables carry a signal: a cut cable is known here long before a collective gives up."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sparkserve.plan import Link

NET = Path("/sys/class/net")
LOOKS = 2  # in a row: a link that only flaps is not cut


class Carriers:
    """Looks at the interfaces of `links`."""

    def __init__(self, links: Sequence[Link]) -> None:
        self._links = links
        self._misses = dict.fromkeys(links, 0)

    def trouble(self) -> str:
        """What is cut for `LOOKS` calls in a row, "" for nothing; also where /sys cannot tell."""
        if not NET.is_dir():
            return ""
        for link in self._links:
            self._misses[link] = 0 if carrier(link.interface, NET) else self._misses[link] + 1
        cut = [link for link, misses in self._misses.items() if misses >= LOOKS]
        return ", ".join(f"no carrier on {link.interface} to {ranks(link)}" for link in cut)


def ranks(link: Link) -> str:
    """Who is at the other end of a link, in words."""
    each = [str(peer.rank) for peer in link.peers]
    return f"rank {each[0]}" if len(each) == 1 else f"ranks {', '.join(each)}"


def carrier(interface: str, net: Path) -> bool:
    """Whether the kernel, whose interfaces are in the folder `net`, sees a signal on this one."""
    try:
        return (net / interface / "carrier").read_text().strip() == "1"
    except OSError:  # not there, or administratively down
        return False
