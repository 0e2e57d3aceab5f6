"""Download weights: checked, resumable, cancellable, with progress.

Knows addresses, files and hashes; knows no architecture. Imports the top files.
"""
