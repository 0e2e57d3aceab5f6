"""Run the ``hookviz`` command, whose subcommands are imported when one is called.

`main` finds them; `options` and `terminal` have what several share.
"""
