"""Show what a person chooses at the side: image, model, weights, layer, view."""
