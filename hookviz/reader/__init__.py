"""Read files that strangers send in processes that have nothing to lose.

`wall.read` hands a file to a small server of processes (`fork_server`), which forks one for it, has
it give up everything but its memory (`fork_server.confine`) and lets it answer in a file of memory
(`answer_file`). What may be read so stands in `wall.JOBS`. Nothing here knows a format.
"""
