"""``python -m hookviz`` is the ``hookviz`` command."""

from hookviz.cli import main

main()
