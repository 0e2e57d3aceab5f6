"""Run the ``hookviz`` command: one file per subcommand, loaded when it is asked for.

`main` finds them; what several share is in `options`, `tables`, `messages` and `input_files`.
"""
