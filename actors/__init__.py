"""The agents and the root as actors, and the layers below them."""
