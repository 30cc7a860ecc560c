"""Finds in lmms-eval what a patch changes or reads. No patch itself, but used by them.

Where that is gone, an error names the releases of lmms-eval that have it, so that no patch just
does nothing.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

from proactivebench_tasks.errors import HarnessError

#: The releases of lmms-eval that are supported, oldest and newest. CONTRIBUTING.md says what to do
#: for a newer one.
OLDEST, NEWEST = "0.7.0", "0.7.3"


def find(owner: object, name: str) -> Any:
    """The attribute ``name`` of ``owner``, which is an object, or the name of a module to import.

    ``HarnessError`` if the attribute, or the module, is not there.
    """
    try:
        return getattr(importlib.import_module(owner) if isinstance(owner, str) else owner, name)
    except (ImportError, AttributeError) as error:
        raise HarnessError(
            f"lmms-eval {release() or 'in this checkout'} has no {_called(owner)}.{name}, which "
            f"ProactiveBench needs ({error}); supported are lmms-eval {OLDEST} to {NEWEST}: "
            f"pip install 'lmms-eval>={OLDEST},<={NEWEST}'"
        ) from error


def release() -> str:
    """The release of lmms-eval that runs, such as ``0.7.3``; empty if it runs from a checkout."""
    try:
        installed = importlib.metadata.distribution("lmms-eval")
    except importlib.metadata.PackageNotFoundError:
        return ""
    found = importlib.util.find_spec("lmms_eval")
    running = Path(found.origin) if found is not None and found.origin else Path()
    own = Path(str(installed.locate_file("lmms_eval/__init__.py")))
    return installed.version if running.resolve() == own.resolve() else ""


def _called(owner: object) -> str:
    if isinstance(owner, str):
        return owner
    if isinstance(owner, ModuleType):
        return owner.__name__
    kind = owner if isinstance(owner, type) else type(owner)
    return f"{kind.__module__}.{kind.__qualname__}"
