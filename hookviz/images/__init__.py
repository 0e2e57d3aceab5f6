"""A file's bytes → pixels → a network's input, with the crop's geometry; and the samples.

Everything that touches untrusted image bytes belongs here, and nothing that knows a network.
Imports the top files.
"""
