"""Untrusted files of weights → the state dict in them, without running what they hold.

What kind of file it is, what is refused before it is read, what is found inside. Knows no
architecture. Imports the top files.
"""
