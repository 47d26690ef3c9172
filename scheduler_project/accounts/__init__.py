"""Users and groups over REST."""
