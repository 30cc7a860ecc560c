"""The command ``proactivebench``, one module a group of commands."""
