"""The tasks and groups, as lmms-eval's YAML files. Also usable with ``--include_path``.

``generate.py`` writes every YAML file here: change its table and run it, not the files.
"""
