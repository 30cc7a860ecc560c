"""The tasks and groups, as lmms-eval's YAML files. Also usable with ``--include_path``."""
