"""What this package changes in lmms-eval's model wrappers, one module a patch.

A patch is a context manager that is given the wrapper. What it changes is so while our tasks are
played, and as it was before once they are done. Where there is nothing to change it says so in a
debug line.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from proactivebench_tasks.model_patches.wrappers import event_loop, finish_reason, timeout

_PATCHES = (finish_reason.told, event_loop.kept, timeout.passed_on)


@contextmanager
def patched(lm: Any) -> Iterator[None]:
    """All patches, for as long as the ``with`` block plays our tasks with this wrapper."""
    with ExitStack() as stack:
        for patch in _PATCHES:
            stack.enter_context(patch(lm))
        yield
