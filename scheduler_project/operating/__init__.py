"""What operators' commands share: how they end, how they name things, and how they write tables and times."""
