"""Read the state dict in an untrusted file of weights without running what the file holds.

`guards` refuses files before they are loaded, `files` reads and writes them. Knows no architecture.
"""
