"""All-reduce and all-gather of CPU ranks in one round over the cables. See adapter.toml."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from sparkserve.adapters.contract import Failure
from sparkserve.adapters.oneshot_collectives.links import open_mesh

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import torch

    from sparkserve.adapters.contract import Group
    from sparkserve.adapters.oneshot_collectives.collectives import Collectives


class Adapter:
    """Hooks of GroupCoordinator. Before `start`, and for other groups and devices, SGLang's own code runs."""

    def __init__(self, settings: Mapping[str, int]) -> None:
        self._settings = settings
        self._collectives: Collectives | None = None

    def start(self, group: Group) -> None:
        """Connect to every peer. Raises Failure when one does not come, or has no cable in the plan."""
        from sparkserve.adapters.oneshot_collectives.collectives import Collectives

        missing = set(range(group.size)) - {group.rank} - {link.peer for link in group.links}
        if missing:
            raise Failure(f"the plan has no link to rank {', '.join(map(str, sorted(missing)))}")
        mesh = open_mesh(
            group.rank,
            group.links,
            group.meet,
            group.token,
            timeout_s=self._settings["timeout_s"],
            split_bytes=self._settings["split_bytes"],
        )
        self._collectives = Collectives(mesh)
        if self._settings["pin"]:
            cores = sorted(os.sched_getaffinity(0))
            os.sched_setaffinity(0, {cores[group.rank % len(cores)]})

    def all_reduce(self, original: Callable[..., Any], group: Any, input_: torch.Tensor) -> torch.Tensor:
        """GroupCoordinator.all_reduce: the sum replaces the input, as on SGLang's CPU path."""
        ours = self._ours(group, input_)
        return original(group, input_) if ours is None else ours.all_reduce(input_)

    def all_gather(
        self,
        original: Callable[..., Any],
        group: Any,
        input_: torch.Tensor,
        dim: int = -1,
        output_tensor_list: list[torch.Tensor] | None = None,
    ) -> torch.Tensor:
        """GroupCoordinator.all_gather: ranks side by side along `dim`."""
        ours = self._ours(group, input_)
        if ours is None or output_tensor_list is not None:
            return original(group, input_, dim, output_tensor_list)
        return ours.all_gather(input_, dim)

    def all_gather_into_tensor(
        self, original: Callable[..., Any], group: Any, output: torch.Tensor, input: torch.Tensor
    ) -> None:
        """GroupCoordinator.all_gather_into_tensor: ranks one after the other in `output`."""
        ours = self._ours(group, input)
        if ours is None:
            original(group, output, input)
        else:
            ours.all_gather_into(output, input)

    def _ours(self, group: Any, tensor: torch.Tensor) -> Collectives | None:
        ours = self._collectives
        # A group of all ranks has them in order. A smaller one has no mesh; one rank alone needs none.
        return ours if ours is not None and group.world_size == ours.size and tensor.is_cpu else None
