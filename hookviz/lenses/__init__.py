"""Hold the lenses, ways of looking: a module here with a ``LENS`` is offered everywhere.

What several lenses share and what needs no network's answer belongs to `hookviz.explaining` and
`hookviz.drawing`. A lens imports `hookviz.lenses.contract` and the packages below, and no other
lens.
"""
