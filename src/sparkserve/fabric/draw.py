"""Draws the cabling of a fleet as SVG, for whoever plugs the cables: equal plans give equal bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sparkserve.fabric.cabling import fabric
from sparkserve.fleet import svg
from sparkserve.fleet.svg import FAINT, Box

if TYPE_CHECKING:
    from collections.abc import Sequence
    from xml.etree import ElementTree as ET

    from sparkserve.plan import Link, Plan

MARGIN, GAP = 24, 20
IN_A_ROW = 4
CARD_WIDTH, CARD_HEIGHT = 290, 262
TRACK = 34  # between two cables
PAPER, CARD, FREE = "#f4f6f7", "#ffffff", "#eceff1"
# Dark enough for a thin line, and apart from each other for most colour-blind eyes.
COLOURS = ("#1f5fa8", "#c2571a", "#2b7a4b", "#7a3f8f")


class Place(NamedTuple):
    """A port on the page: which node's, and its box."""

    plan: Plan
    port: int
    box: Box

    @property
    def links(self) -> list[Link]:
        """The stripes of the port, if it is cabled."""
        return [link for link in fabric(self.plan).links if link.port == self.port]


def draw(plans: Sequence[Plan]) -> str:
    """The text of the SVG file. Raises `GROUP.STATE` for a fleet without cables."""
    rails = len({link.rail for plan in plans for link in fabric(plan).links})
    rows = [plans[start : start + IN_A_ROW] for start in range(0, len(plans), IN_A_ROW)]
    widest = max(len(row) for row in rows)
    width = max(2 * MARGIN + widest * CARD_WIDTH + (widest - 1) * GAP, 700)
    fleet = plans[0].fleet
    page = svg.page(f"Cabling of {fleet.name}")
    paper = svg.rect(page, Box(0, 0, width, 0), PAPER, "none")
    svg.text(page, MARGIN, 44, f"Cabling of {fleet.name}", width - 2 * MARGIN, size=20, bold=True)
    order = ", ".join(node.name for node in fleet.nodes)
    words = f"{fleet.topology}, MTU {fabric(plans[0]).mtu}, rank order {order}"
    svg.text(page, MARGIN, 66, words, width - 2 * MARGIN, colour=FAINT)
    y = 84.0
    for row in rows:
        left = (width - len(row) * CARD_WIDTH - (len(row) - 1) * GAP) / 2
        places = []
        for i, plan in enumerate(row):
            places += _node(page, plans, plan, Box(left + i * (CARD_WIDTH + GAP), y, CARD_WIDTH, CARD_HEIGHT))
        _rails(page, places, Box(0, y + CARD_HEIGHT, width, 0), again=row is not rows[0])
        y += CARD_HEIGHT + (rails + 1) * TRACK + GAP
    words = "A port shows as two functions, its stripes: each has an interface, an RDMA device and a network."
    svg.text(page, MARGIN, y + 4, words, width - 2 * MARGIN, colour=FAINT)
    paper.set("height", f"{y + 24:g}")
    return svg.finish(page, width, y + 24)


def _node(page: ET.Element, plans: Sequence[Plan], plan: Plan, box: Box) -> list[Place]:
    """Draw a node and its two ports."""
    svg.rect(page, box, CARD, radius=10)
    management = fabric(plan).management
    role = f"rank {plan.node.rank}" + (", head" if plan.node.rank == 0 else "")
    svg.text(page, box.x + 12, box.y + 26, plan.node.name, box.width - 110, size=15, bold=True)
    svg.text(page, box.x + box.width - 12, box.y + 26, role, 100, anchor="end")
    words = f"management: {management.interface} {management.address}"
    svg.text(page, box.x + 12, box.y + 46, words, box.width - 24, size=11, colour=FAINT)
    width = (box.width - 36) / 2
    places = [
        Place(plan, port, Box(box.x + 12 + port * (width + 12), box.y + 58, width, box.height - 70))
        for port in (0, 1)
    ]
    for place in places:
        _port(page, place, _to(plans, place))
    return places


def _port(page: ET.Element, place: Place, to: Sequence[str]) -> None:
    box, links = place.box, place.links
    x, room = box.x + 8, box.width - 16
    if not links:
        svg.rect(page, box, FREE, dash="4 3")
        svg.text(page, x, box.y + 18, f"port {place.port}", room, bold=True)
        svg.text(page, x, box.y + 36, "no cable", room, size=11, colour=FAINT)
        return
    colour = COLOURS[links[0].rail % len(COLOURS)]
    svg.rect(page, box, CARD, colour)
    svg.text(page, x, box.y + 18, f"port {place.port}", room, bold=True)
    y = box.y + 38
    for link in links:
        svg.text(page, x, y, f"stripe {link.stripe}", room, size=11, colour=FAINT)
        for words in (link.interface, link.hca, str(link.address)):
            y += 14
            svg.text(page, x, y, words, room, size=11, mono=True)
        y += 20
    y = box.y + box.height - 9 - 14 * len(to)
    for words in to:
        y += 14
        svg.text(page, x, y, words, room, size=11, bold=True, colour=colour)


def _to(plans: Sequence[Plan], place: Place) -> list[str]:
    """Where the cable in a port goes, in lines; none for a port without."""
    if not place.links:
        return []
    if place.plan.fleet.topology == "switched":
        return ["to the switch"]
    there, rail = plans[place.links[0].peers[0].rank], place.links[0].rail
    port = next(link.port for link in fabric(there).links if link.rail == rail)
    return [f"to {there.node.name}", f"port {port}"]


def _rails(page: ET.Element, places: Sequence[Place], top: Box, *, again: bool) -> None:
    """Draw what joins the ports of a row below `top`: a line for a cable, a bar for a switch."""
    rails = sorted({link.rail for place in places for link in place.links})
    labels = []
    for i, rail in enumerate(rails):
        joined = [place for place in places if place.links and place.links[0].rail == rail]
        colour, y = COLOURS[rail % len(COLOURS)], top.y + (i + 1) * TRACK
        for place in joined:
            svg.line(page, f"M{place.box.middle:g} {place.box.y + place.box.height:g}V{y:g}", colour, 4)
        first, last = joined[0].box.middle, joined[-1].box.middle
        switched = joined[0].plan.fleet.topology == "switched"
        svg.line(page, f"M{first:g} {y:g}H{last:g}", colour, 10 if switched else 4)
        labels.append(((first + last) / 2, y, _label(joined, switched=switched, again=again)))
    # Above all lines, so that none runs through the words.
    for x, y, words in labels:
        width = min(len(words) * 12 * svg.SANS_EM + 12, top.width - 2 * MARGIN)
        box = Box(min(max(x - width / 2, MARGIN), top.width - MARGIN - width), y - 10, width, 20)
        svg.rect(page, box, PAPER)
        svg.text(page, box.middle, y + 4, words, width, anchor="middle")


def _label(joined: Sequence[Place], *, switched: bool, again: bool) -> str:
    nets = ", ".join(f"{str(link.address).rpartition('.')[0]}.0/{link.prefix}" for link in joined[0].links)
    if switched:
        return f"switch{', the same' if again else ''}: {nets}"
    return " to ".join(f"{place.plan.node.name} port {place.port}" for place in joined) + f": {nets}"
