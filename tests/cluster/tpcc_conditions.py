#!/usr/bin/python3
"""Checks TPC-C's twelve consistency conditions over the CSV files of an export, as SQL in SQLite.

tpcc_conditions.py DIR prints the largest D_NEXT_O_ID. It ends with 1 if a condition is violated, or
if a table that was spoiled on purpose does not violate its condition.
"""
import csv
import json
import pathlib
import sqlite3
import sys

DELIVERED = 2100  # rows of ORDER without one in NEW-ORDER after the load, per district

# Violations of each condition of clause 3.3.2, and a statement that spoils the data for it.
CONDITIONS = {
    1: ("""SELECT w_id, w_ytd, sum(d_ytd) FROM tpcc_warehouse_ytd JOIN tpcc_district_ytd
           ON d_w_id = w_id GROUP BY w_id HAVING w_ytd <> sum(d_ytd)""",
        "UPDATE tpcc_warehouse_ytd SET w_ytd = w_ytd + 1 WHERE w_id = 1"),
    2: ("""SELECT d_w_id, d_id, d_next_o_id, last_order, last_new FROM tpcc_district_next
           JOIN (SELECT o_w_id, o_d_id, max(o_id) last_order FROM tpcc_order GROUP BY 1, 2)
             ON o_w_id = d_w_id AND o_d_id = d_id
           LEFT JOIN (SELECT no_w_id, no_d_id, max(no_o_id) last_new FROM tpcc_new_order
                      GROUP BY 1, 2) ON no_w_id = d_w_id AND no_d_id = d_id
           WHERE d_next_o_id - 1 <> last_order
              OR (last_new IS NOT NULL AND d_next_o_id - 1 <> last_new)""",
        "UPDATE tpcc_district_next SET d_next_o_id = d_next_o_id + 1 WHERE d_id = 3"),
    3: ("""SELECT no_w_id, no_d_id FROM tpcc_new_order GROUP BY 1, 2
           HAVING max(no_o_id) - min(no_o_id) + 1 <> count(*)""",
        """DELETE FROM tpcc_new_order WHERE no_o_id =
           (SELECT max(no_o_id) - 1 FROM tpcc_new_order WHERE no_w_id = 1 AND no_d_id = 1)"""),
    4: ("""SELECT o_w_id, o_d_id, lines, rows FROM
             (SELECT o_w_id, o_d_id, sum(o_ol_cnt) lines FROM tpcc_order GROUP BY 1, 2)
           LEFT JOIN (SELECT ol_w_id, ol_d_id, count(*) rows FROM tpcc_order_line GROUP BY 1, 2)
             ON ol_w_id = o_w_id AND ol_d_id = o_d_id
           WHERE lines IS NOT rows""",
        "DELETE FROM tpcc_order_line WHERE ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = 7"),
    5: ("""SELECT o_w_id, o_d_id, o_id FROM tpcc_order LEFT JOIN tpcc_new_order
             ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id
           WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)""",
        "UPDATE tpcc_order SET o_carrier_id = NULL WHERE o_id = 5"),
    6: ("""SELECT o_w_id, o_d_id, o_id FROM tpcc_order LEFT JOIN
             (SELECT ol_w_id, ol_d_id, ol_o_id, count(*) rows FROM tpcc_order_line GROUP BY 1, 2, 3)
             ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
           WHERE o_ol_cnt IS NOT rows""",
        "UPDATE tpcc_order SET o_ol_cnt = o_ol_cnt + 1 WHERE o_id = 5"),
    7: ("""SELECT o_w_id, o_d_id, o_id FROM tpcc_order JOIN tpcc_order_line
             ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
           WHERE (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)""",
        "UPDATE tpcc_order_line SET ol_delivery_d = NULL WHERE ol_o_id = 5 AND ol_number = 1"),
    8: ("""SELECT w_id, w_ytd, amount FROM tpcc_warehouse_ytd LEFT JOIN
             (SELECT h_w_id, sum(h_amount) amount FROM tpcc_history GROUP BY 1) ON h_w_id = w_id
           WHERE w_ytd IS NOT amount""",
        "UPDATE tpcc_history SET h_amount = h_amount + 1 WHERE rowid = 1"),
    9: ("""SELECT d_w_id, d_id, d_ytd, amount FROM tpcc_district_ytd LEFT JOIN
             (SELECT h_w_id, h_d_id, sum(h_amount) amount FROM tpcc_history GROUP BY 1, 2)
             ON h_w_id = d_w_id AND h_d_id = d_id
           WHERE d_ytd IS NOT amount""",
        "UPDATE tpcc_district_ytd SET d_ytd = d_ytd - 1 WHERE d_id = 10"),
    10: ("""SELECT c_w_id, c_d_id, c_id, c_balance, delivered, paid FROM tpcc_customer_dynamic
            LEFT JOIN delivered USING (c_w_id, c_d_id, c_id)
            LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, sum(h_amount) paid FROM tpcc_history
                       GROUP BY 1, 2, 3)
              ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id
            WHERE c_balance <> ifnull(delivered, 0) - ifnull(paid, 0)""",
         "UPDATE tpcc_customer_dynamic SET c_balance = c_balance + 1 WHERE c_id = 9"),
    11: (f"""SELECT o_w_id, o_d_id, orders, waiting, deliveries FROM
               (SELECT o_w_id, o_d_id, count(*) orders FROM tpcc_order GROUP BY 1, 2)
             LEFT JOIN (SELECT no_w_id, no_d_id, count(*) waiting FROM tpcc_new_order GROUP BY 1, 2)
               ON no_w_id = o_w_id AND no_d_id = o_d_id
             JOIN (SELECT c_w_id, c_d_id, sum(c_delivery_cnt) deliveries FROM tpcc_customer_dynamic
                   GROUP BY 1, 2) ON c_w_id = o_w_id AND c_d_id = o_d_id
             WHERE orders - ifnull(waiting, 0) <> {DELIVERED} + deliveries""",
         "UPDATE tpcc_customer_dynamic SET c_delivery_cnt = c_delivery_cnt + 1 WHERE c_id = 9"),
    12: ("""SELECT c_w_id, c_d_id, c_id FROM tpcc_customer_dynamic
            LEFT JOIN delivered USING (c_w_id, c_d_id, c_id)
            WHERE c_balance + c_ytd_payment <> ifnull(delivered, 0)""",
         "UPDATE tpcc_customer_dynamic SET c_ytd_payment = c_ytd_payment - 1 WHERE c_id = 9"),
}
TABLES = ("tpcc_warehouse_ytd", "tpcc_district_ytd", "tpcc_district_next", "tpcc_customer_dynamic",
          "tpcc_order", "tpcc_new_order", "tpcc_order_line", "tpcc_history")
# Sum of the amounts of the delivered lines of each customer's orders.
DELIVERED_VIEW = """CREATE TEMP VIEW delivered AS
  SELECT o_w_id c_w_id, o_d_id c_d_id, o_c_id c_id, sum(ol_amount) delivered
  FROM tpcc_order JOIN tpcc_order_line
    ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
  WHERE ol_delivery_d IS NOT NULL GROUP BY 1, 2, 3"""


def value_of(text, type_name):
    """A field as SQLite stores it: money in cents, an empty field is null."""
    if text == "":
        return None
    if type_name.startswith("decimal"):
        return int(text.replace(".", ""))
    return int(text) if type_name[0] in "iu" else text


def load(connection, directory, table):
    columns = [(column["name"], column["type"]) for column in table["columns"]]
    names = [name for name, _ in columns]
    connection.execute(f"CREATE TABLE {table['name']} ({', '.join(names)})")
    insert = f"INSERT INTO {table['name']} VALUES ({', '.join('?' * len(names))})"
    for number, part in enumerate(table["parts"]):
        path = directory / table["name"] / f"part-{number:04}.csv"
        with open(path, newline="", encoding="utf-8") as file:
            reader = csv.reader(file)
            if next(reader) != names:
                sys.exit(f"{path}: the first line does not name the columns")
            rows = [[value_of(text, kind) for text, (_, kind) in zip(row, columns, strict=True)]
                    for row in reader]
        if len(rows) != part["rows"]:
            sys.exit(f"{path}: has {len(rows)} rows, the manifest says {part['rows']}")
        connection.executemany(insert, rows)


def violations(connection, condition):
    return connection.execute(CONDITIONS[condition][0] + " LIMIT 3").fetchall()


def main():
    directory = pathlib.Path(sys.argv[1])
    export = json.loads((directory / "export.json").read_text(encoding="utf-8"))["export"]
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("BEGIN")
    for table in export["tables"]:
        if table["name"] in TABLES:
            load(connection, directory, table)
    connection.execute("CREATE INDEX lines ON tpcc_order_line (ol_w_id, ol_d_id, ol_o_id)")
    connection.execute("CREATE INDEX new_orders ON tpcc_new_order (no_w_id, no_d_id, no_o_id)")
    connection.execute(DELIVERED_VIEW)
    connection.execute("COMMIT")
    is_good = True
    for condition in CONDITIONS:
        found = violations(connection, condition)
        if found:
            is_good = False
            print(f"condition {condition} is violated: {found}", file=sys.stderr)
    for condition, (_, spoil) in CONDITIONS.items():
        connection.execute("BEGIN")
        changed = connection.execute(spoil).rowcount
        if changed < 1 or not violations(connection, condition):
            is_good = False
            print(f"condition {condition} is not violated by: {spoil}", file=sys.stderr)
        connection.execute("ROLLBACK")
    print(connection.execute("SELECT max(d_next_o_id) FROM tpcc_district_next").fetchone()[0])
    sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    main()
