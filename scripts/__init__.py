"""What the Makefile calls. Nothing in the product imports it."""
