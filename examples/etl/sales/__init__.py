"""The steps of the daily sales pipeline: parameters, extract, transform, load."""
