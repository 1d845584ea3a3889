"""The agents as actors, the switchboard above them, and the layers below."""
