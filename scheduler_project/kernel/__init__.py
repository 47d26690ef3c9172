"""What every package may use and what uses nothing but the standard library."""
