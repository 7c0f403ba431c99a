"""All-reduce and all-gather of CPU tensors, from rounds of the mesh."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from sparkserve.adapters.oneshot_collectives.mesh import Mesh

# What a header says about the tensor, beside its size. All ranks run one version, so the numbers may change.
_DTYPES = (
    *(torch.float32, torch.bfloat16, torch.float16, torch.float64),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
)
_KIND = {dtype: number for number, dtype in enumerate(_DTYPES)}
_REDUCE, _GATHER = 0x100, 0x200


class Collectives:
    """Collectives over all ranks: each calls the same one with the same shape and type, from one thread."""

    def __init__(self, mesh: Mesh) -> None:
        self.size = mesh.size
        self._mesh = mesh

    def all_reduce(self, tensor: torch.Tensor) -> torch.Tensor:
        """Replace `tensor` by the sum over all ranks, and return it.

        Added in rank order on every rank, so that all have the same bits; in float32 for the shorter floating
        types, else in the tensor's own. Raises `Broken`.
        """
        parts = self._round(_REDUCE, tensor)
        # Added up where the first part lies: this rank's own tensor, or a buffer that the next round fills.
        total = parts[0]
        if tensor.dtype in (torch.bfloat16, torch.float16):
            total = total.to(torch.float32)
        for part in parts[1:]:
            total.add_(part)
        return tensor if total.data_ptr() == tensor.data_ptr() else tensor.copy_(total.view_as(tensor))

    def all_gather(self, tensor: torch.Tensor, dim: int) -> torch.Tensor:
        """The tensors of all ranks, in rank order, side by side along `dim`. Raises `Broken`."""
        parts = self._round(_GATHER, tensor)
        return torch.cat([part.view(tensor.shape) for part in parts], dim=dim)

    def all_gather_into(self, output: torch.Tensor, tensor: torch.Tensor) -> None:
        """The tensors of all ranks one after the other in `output`, which holds them all. Raises `Broken`."""
        parts = self._round(_GATHER, tensor)
        for slot, part in zip(output.view(self.size, -1), parts, strict=True):
            slot.copy_(part)

    def _round(self, kind: int, tensor: torch.Tensor) -> list[torch.Tensor]:
        """The flat tensors of all ranks. Those of peers lie in buffers of the mesh."""
        own = tensor.detach().reshape(-1)
        if own.numel() == 0:
            return [own] * self.size
        # The tensor's memory itself, in a fifth of the time that a view as bytes takes in torch and numpy.
        memory = (ctypes.c_char * own.nbytes).from_address(own.data_ptr())
        received = self._mesh.exchange(kind | _KIND[tensor.dtype], memoryview(memory).cast("B"))
        return [
            own if rank == self._mesh.rank else torch.frombuffer(view, dtype=tensor.dtype)
            for rank, view in enumerate(received)
        ]
