"""The demo of `make demo`: a pipeline over a few million trips on Spark or, without Java, a tour without Spark."""

import typer

from frazil.cli.demo import run_demo
from frazil.cli.demo_spark import has_spark, run_spark_demo

if __name__ == "__main__":
    if has_spark():
        run_spark_demo(typer.echo)
    else:
        run_demo(typer.echo)
        typer.echo("\nThis was the tour without Spark. The pipeline over millions of rows needs pyspark and Java 17.")
