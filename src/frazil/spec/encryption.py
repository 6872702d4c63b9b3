"""Encryption keys in table metadata. Specification: "Encryption Keys".

They are kept and written back, but not used for decryption.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from frazil.spec.frozen_map import NO_EXTRA, FrozenMap, freeze_maps
from frazil.spec.statistics import NO_PROPERTIES


@dataclass(frozen=True, slots=True)
class EncryptedKey:
    """A key, wrapped by another key or a key service; `repr` omits the wrapped bytes to keep them out of logs."""

    key_id: str
    encrypted_key_metadata: bytes = field(repr=False)
    encrypted_by_id: str | None = None
    properties: FrozenMap[str, str] = NO_PROPERTIES
    extra: FrozenMap[str, Any] = field(default=NO_EXTRA, hash=False, repr=False)

    def __post_init__(self) -> None:
        freeze_maps(self, "properties")
