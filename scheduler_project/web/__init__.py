"""What stands between the network and the views: addresses, content policy, refused logins."""
