"""The tour that `make demo` runs: a lake in a folder, without Spark, then from Spark SQL where there is a Java."""

from frazil.cli.demo import run_demo
from frazil.cli.demo_spark import has_spark, run_spark_demo

if __name__ == "__main__":
    run_demo(print)
    if has_spark():
        run_spark_demo(print)
    else:
        print("\nThe second half of the tour needs Spark: install pyspark and Java 17.")
