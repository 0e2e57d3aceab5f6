"""``python -m hookviz`` is the ``hookviz`` command."""

from hookviz.cli import main

if __name__ == "__main__":
    main()
