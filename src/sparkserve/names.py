"""The types of the names that several documents have. Apart from `plan`, whose models take 30 ms to make."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

Name = Annotated[str, Field(min_length=1)]
# As the options are typed (modules/types/text.nix): what is written to a node is written by root.
FleetName = Annotated[str, Field(pattern="^[a-z][a-z0-9-]{0,30}$")]
GateName = Annotated[str, Field(pattern="^[a-z][a-z0-9-]{0,30}$")]
