"""Writes the table of variables into docs/configuration.md: ``python docs/make_configuration.py``.

The table is what ``proactivebench_tasks.config`` says; ``tests/test_docs.py`` compares the two.
"""

from __future__ import annotations

from pathlib import Path

from proactivebench_tasks import config

PAGE = Path(__file__).parent / "configuration.md"
BEGIN = "<!-- variables: written by docs/make_configuration.py; an edit made here is lost -->\n"
END = "<!-- end of variables -->\n"


def with_table(text: str) -> str:
    """The page with the present table between the two comments."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}{config.documentation()}{END}{tail}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"wrote {PAGE}")
