"""Draw numbers as pictures: statistics, layout, scales, colours, PNG, figures, panels.

The only package that knows matplotlib, and one that knows no network: it is given numbers. Imports
the top files.
"""
