"""Decode image files to pixels and prepare them as a network's input, keeping the geometry.

Everything that touches untrusted image bytes belongs here, and nothing that knows a network.
Imports the top files.
"""
