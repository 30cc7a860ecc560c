"""Versions: the protocol that a record was made by."""

from __future__ import annotations

from proactivebench_tasks.errors import ProtocolError
from proactivebench_tasks.protocol import published
from proactivebench_tasks.protocol.builtin import BUILTIN
from proactivebench_tasks.protocol.protocol import Protocol


def of(version: str) -> Protocol:
    """The protocol of this version; ``ProtocolError`` if it cannot be had."""
    found = BUILTIN if version.startswith("builtin") else published.load()
    if found.version != version:
        raise ProtocolError(
            f"the sample was played by protocol {version}, but {found.version} is installed: use "
            "the release of this package that played it"
        )
    return found
