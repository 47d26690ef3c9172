"""The dashboard and the calendar: what runs now, how it has gone, and what is to come."""
