"""``python -m hookviz`` is the ``hookviz`` command."""

from hookviz.cli.main import main

if __name__ == "__main__":
    main()
