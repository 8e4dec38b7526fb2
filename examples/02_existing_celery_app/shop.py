"""A Celery application as it stood before graphrun, and a graph of its tasks; the tasks are not changed."""

import os

from celery import Celery

import graphrun

app = Celery("shop", broker=os.environ.get("GRAPHRUN_BROKER_URL", "redis://127.0.0.1:6379/0"))
app.conf.result_backend = os.environ.get("GRAPHRUN_RESULT_URL") or app.conf.broker_url


@app.task(name="shop.price")
def price(article: str, pieces: int) -> float:
    return {"apple": 0.5, "pear": 0.75}[article] * pieces


@app.task(name="shop.invoice")
def invoice(lines: list[float], customer: str) -> str:
    return f"{customer} pays {sum(lines):.2f}"


graphrun.install(app)

graph = graphrun.Graph("invoice")
apples = graph.add(price, article="apple", pieces=10, key="apples")
pears = graph.add("shop.price", article="pear", pieces=4, key="pears")  # by name it is the same
graph.add(invoice, lines=[apples, pears], customer="Ada", key="invoice")

if __name__ == "__main__":
    run = graphrun.Client(app=app).submit(graph)
    run.wait(timeout=60)
    print(run.output("invoice"))
