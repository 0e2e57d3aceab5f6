"""Run the shards of a job in this process, or in the workers of a Ray cluster.

An engine knows neither networks nor images: a job hands it work that can be pickled, and shards.
Imports machine, wording and errors. Only `ray_engine` and `ray_worker` know Ray.
"""
