"""Read the state dict in an untrusted file of weights without running what the file holds.

What kind of file it is, what is refused before it is read, what is found inside. Knows no
architecture. Imports the top files.
"""
