"""SQL engines for tests: input is a table of Arrow, output are rows of Python; PostgreSQL's rows are text."""

import csv
import datetime
import io
import os
import shlex
import shutil
import sqlite3
import subprocess
import tempfile
from pathlib import Path

import duckdb
import pyarrow as pa

NULL = "~null~"
# SQL types by Arrow type; other types are whole numbers.
LITE = {"int64": "INTEGER", "bool": "INTEGER", "double": "REAL", "large_string": "TEXT", "string": "TEXT"}
POSTGRES = {
    "large_string": "text",
    "string": "text",
    "double": "float8",
    "float": "float4",
    "bool": "bool",
    "date32[day]": "date",
    "timestamp[us]": "timestamp",
    "timestamp[us, tz=UTC]": "timestamptz",
    "decimal128(4, 2)": "numeric",
}
SPARK = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.session.timeZone": "Europe/Berlin",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


class DuckDB:
    """DuckDB in memory."""

    dialect = "duckdb"
    error = duckdb.Error

    def ask(self, table, *statements):
        """Run statements beside a table called rows, and give the rows of the last one."""
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            connection.register("given_rows", table)
            connection.execute("CREATE TABLE rows AS SELECT * FROM given_rows")
            for statement in statements:
                connection.execute(statement)
            return connection.fetchall()

    def stop(self):
        """Nothing runs."""


class SQLite:
    """SQLite in memory, with the types of columns that pandas gives it."""

    dialect = "sqlite"
    error = sqlite3.Error

    def ask(self, table, *statements):
        """Run statements beside a table called rows, and give the rows of the last one."""
        connection = sqlite3.connect(":memory:")
        connection.execute(f"CREATE TABLE rows ({declared(table, LITE)})")
        rows = [[held(value) for value in row] for row in rows_of(table)]
        connection.executemany(f"INSERT INTO rows VALUES ({', '.join('?' * table.num_columns)})", rows)
        for statement in statements:
            if statement.startswith(".import"):
                fill(connection, statement)
                continue
            answer = connection.execute(statement)
        return answer.fetchall()

    def stop(self):
        """Nothing runs."""


class Postgres:
    """A server of PostgreSQL of its own, which listens on a socket in its folder and on no port."""

    dialect = "postgres"
    error = RuntimeError

    def __init__(self):
        self.home = Path(tempfile.mkdtemp(prefix="pg"))
        # It refuses to run as root.
        self.settings = {"user": "nobody"} if os.geteuid() == 0 else {}
        if self.settings:
            shutil.chown(self.home, "nobody")
        self.call("initdb", "--no-sync", "--encoding=UTF8", "--locale=C", "--username=tester", "-D", "data")
        options = f"-c listen_addresses='' -c fsync=off -k {self.home}"
        self.call("pg_ctl", "start", "--wait", "-D", "data", "-l", "log", "-o", options)

    @staticmethod
    def programs():
        """Give the folder of PostgreSQL's programs, or None if it is not installed."""
        folders = [Path(os.environ.get("PG_BIN", "")), *sorted(Path("/usr/lib/postgresql").glob("*/bin"))]
        found = [folder for folder in folders if (folder / "initdb").exists() and (folder / "psql").exists()]
        return found[-1] if found else None

    def call(self, program, *arguments, told=None):
        """Run one of PostgreSQL's programs; give its output."""
        # The server keeps the ends of pipes that it is given.
        with tempfile.TemporaryFile("w+", encoding="utf8", newline="") as written:
            done = subprocess.run(
                [self.programs() / program, *arguments],
                input=told, stdout=written, stderr=subprocess.STDOUT, encoding="utf8", cwd=self.home, **self.settings,
                check=False,
            )  # fmt: skip
            written.seek(0)
            text = written.read()
        if done.returncode:
            raise RuntimeError(text)
        return text

    def ask(self, table, *statements):
        """Run statements beside a table called rows, and give the rows of the last one as text."""
        *before, last = statements
        cells = "".join(f"{','.join(map(cell, row))}\n" for row in rows_of(table))
        told = f"""
            SET timezone TO 'UTC';
            BEGIN;
            CREATE TABLE rows ({declared(table, POSTGRES, "bigint")});
            COPY rows FROM STDIN (FORMAT csv, NULL '{NULL}');\n{cells}\\.
            {"".join(f"{statement};" for statement in before)}
            COPY ({last}) TO STDOUT (FORMAT csv, NULL '{NULL}');
            ROLLBACK;
        """
        arguments = ("-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", str(self.home), "-U", "tester", "postgres")
        written = self.call("psql", *arguments, told=told)
        return [
            tuple(None if one == NULL else one for one in row) for row in csv.reader(io.StringIO(written, newline=""))
        ]

    def stop(self):
        """Stop the server."""
        self.call("pg_ctl", "stop", "--mode=immediate", "-D", "data")
        shutil.rmtree(self.home)


class Spark:
    """A session of Spark on one processor, where clocks are set forward in the night to 2024-03-31."""

    dialect = "spark"

    def __init__(self):
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession

        self.error = PySparkException
        self.home = tempfile.mkdtemp(prefix="spark")
        builder = SparkSession.builder.master("local[1]")
        for name, value in SPARK.items():
            builder = builder.config(name, value)
        self.session = builder.config("spark.sql.warehouse.dir", self.home).getOrCreate()
        self.session.sparkContext.setLogLevel("OFF")

    def ask(self, table, *statements):
        """Run statements beside a table called rows, and give the rows of the last one."""
        naive = [field.name for field in table.schema if str(field.type) == "timestamp[us]"]
        # Spark would read them in its own time zone, which lacks some of them.
        spelled = {name: table[name].cast(pa.string()) for name in naive}
        columns = dict(zip(table.column_names, table.columns, strict=True)) | spelled
        frame = self.session.createDataFrame(pa.table(columns))
        for name in naive:
            frame = frame.withColumn(name, frame[name].cast("timestamp_ntz"))
        frame.createOrReplaceTempView("rows")
        for statement in statements:
            answer = self.session.sql(statement)
        rows = [tuple(row) for row in answer.collect()]
        for each in self.session.catalog.listTables():
            if not each.isTemporary:
                self.session.sql(f"DROP {'VIEW' if each.tableType == 'VIEW' else 'TABLE'} {each.name}")
        return rows

    def stop(self):
        """Stop the session."""
        self.session.stop()
        shutil.rmtree(self.home)


def rows_of(table):
    """Give the rows as Python objects."""
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def declared(table, types, other=""):
    """Give the columns of a table with their types."""
    names = ['"{}"'.format(field.name.replace('"', '""')) for field in table.schema]
    return ", ".join(
        f"{name} {types.get(str(field.type), other)}" for name, field in zip(names, table.schema, strict=True)
    )


def fill(connection, line):
    """Do what the shell of SQLite does for a line with .import: every cell is text."""
    *_, path, name = shlex.split(line)
    with Path(path).open(newline="", encoding="utf8") as file:
        header, *rows = csv.reader(file)
    connection.executemany(f'INSERT INTO "{name}" VALUES ({", ".join("?" * len(header))})', rows)


def held(value):
    """Give a value as SQLite holds it: dates as text."""
    return value.isoformat() if isinstance(value, datetime.date) else value


def cell(value):
    """Give a value as a cell of CSV."""
    return NULL if value is None else '"{}"'.format(str(value).replace('"', '""'))
