"""Share one process among many people: turns, models in memory, budgets, logs and metrics.

Knows no Streamlit, so that it can be tested and used without. Imports models, capturing, machine
and the top files.
"""
