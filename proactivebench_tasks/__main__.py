"""``python -m proactivebench_tasks``: the command ``proactivebench``, if it is not on the path."""

from proactivebench_tasks.cli.app import app

app(prog_name="proactivebench")
