"""The only SQL: the ledger, which is the truth of every run. It decides nothing and knows no Celery."""
