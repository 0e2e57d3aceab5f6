"""Show the choices in the sidebar: image, input size, model and weights."""
