"""Studies: models x data x methods x metrics, from a plan to a table, resumable at any moment."""
