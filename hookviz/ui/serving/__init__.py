"""Serve the page: start and warm-up, turns with their place on the screen, login, health.

The queue itself, the pool and the logs are `hookviz.serving`'s.
"""
