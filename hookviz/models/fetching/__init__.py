"""Weights over the network: checked, resumable, cancellable, told as they come.

Knows addresses, files and hashes; knows no architecture. Imports the top files.
"""
