"""Show a lens on the page: its controls, its run and its panels, all from its declaration."""
