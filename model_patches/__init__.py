"""What this package changes inside lmms-eval, one module a change.

Despite the folder's name it is lmms-eval that is patched, not models. The folder lies at the top of
the repository, and is installed as ``proactivebench_tasks.model_patches`` (``setup.py``).

A patch's docstring says what it is for, since which release of lmms-eval it is needed, and when it
can go. There are two kinds, and a helper:

- Most have a function ``apply``, which changes lmms-eval once, for as long as the process lives.
  One of them, ``evaluation``, also tells others what is being evaluated.
- ``response_cache.apply``, ``quiet.only_ours`` and those in ``wrappers`` are context managers: what
  they change is as it was before once our tasks are done.
- ``place`` finds what is patched. It is no patch.

The table in ``docs/how-it-works.md`` says where each is applied.
"""
