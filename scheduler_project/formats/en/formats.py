"""How Django's own pages write times: as the rest of the admin does, and with their zone."""

DATE_FORMAT = "Y-m-d"
DATETIME_FORMAT = SHORT_DATETIME_FORMAT = "Y-m-d H:i:s e"
