"""Show the channels of a layer, and one of them picked up: its map, its sum, its kernel."""
