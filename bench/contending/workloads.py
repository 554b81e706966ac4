"""The transactions of the simulation. A function `draw(random)` returns one transaction: a list of
(number of the record, kind of the access) in the order of the body, and the number of further
accesses, which meet no other transaction."""
import bisect
import itertools

from contending.simulation import INCREMENT, READ, WRITE

# As kCases in cases.cpp.
CASES = {
    "hot": {"rows": 50, "reads": 8, "writes": 2, "theta": 0, "increments": False},
    "zipf": {"rows": 1_000_000, "reads": 0, "writes": 8, "theta": 0.99, "increments": False},
    "increment": {"rows": 1, "reads": 0, "writes": 1, "theta": 0, "increments": True},
    "counter": {"rows": 1, "reads": 0, "writes": 1, "theta": 0, "increments": False},
}


def draw_of_case(case):
    """Returns the function that draws transactions of a case, as Visitor::draw and visit do."""
    sums = None
    if case["theta"]:
        weights = ((i + 1) ** -case["theta"] for i in range(case["rows"]))
        sums = list(itertools.accumulate(weights))

    def draw(random):
        chosen = []
        while len(chosen) < case["reads"] + case["writes"]:
            number = (random.randrange(case["rows"]) if sums is None
                      else bisect.bisect(sums, random.random() * sums[-1]))
            if number not in chosen:
                chosen.append(number)
        kinds = []
        reads, writes = case["reads"], case["writes"]
        write = INCREMENT if case["increments"] else WRITE
        while reads + writes:
            is_write = writes and writes * case["reads"] >= reads * case["writes"]
            kinds.append(write if is_write else READ)
            reads, writes = (reads, writes - 1) if is_write else (reads - 1, writes)
        return list(zip(chosen, kinds)), 0

    return draw


# Numbers of records of TPC-C: those of one table follow each other, in the order of storages.
WAREHOUSE, WAREHOUSE_YTD, DISTRICT, DISTRICT_YTD, OLDEST_ORDER, CUSTOMER, STOCK = (
    number << 40 for number in range(7))
DISTRICTS = 10
CUSTOMERS = 3_000
ITEMS = 100_000


def draw_of_tpcc(warehouses):
    """Returns the function that draws transactions of TPC-C with its standard mix, on the rows that
    transactions share: warehouses, districts, customers, stock, and the oldest order of a district.
    Other rows, such as items and order lines, are further accesses."""

    def new_order(random, warehouse, district):
        lines = random.randint(5, 15)
        stock = {random.randrange(ITEMS) for _ in range(lines)}
        rows = [(WAREHOUSE + warehouse, READ), (DISTRICT + district, WRITE),
                (CUSTOMER + district * CUSTOMERS + random.randrange(CUSTOMERS), READ)]
        # An item and an order line for each row of stock; an order, its index and a new order.
        return rows + [(STOCK + warehouse * ITEMS + item, WRITE) for item in stock], 2 * lines + 3

    def payment(random, warehouse, district):
        customer = CUSTOMER + district * CUSTOMERS + random.randrange(CUSTOMERS)
        # Also reads the names of the warehouse and the district, and appends to the history.
        return [(WAREHOUSE_YTD + warehouse, INCREMENT), (DISTRICT_YTD + district, INCREMENT),
                (customer, WRITE)], 3

    def order_status(random, _, district):
        return [(CUSTOMER + district * CUSTOMERS + random.randrange(CUSTOMERS), READ)], 12

    def delivery(random, warehouse, _):
        rows = []
        for district in range(warehouse * DISTRICTS, (warehouse + 1) * DISTRICTS):
            rows += [(OLDEST_ORDER + district, WRITE),
                     (CUSTOMER + district * CUSTOMERS + random.randrange(CUSTOMERS), WRITE)]
        return rows, DISTRICTS * 11  # an order and its lines in each district

    def stock_level(random, warehouse, district):
        stock = {random.randrange(ITEMS) for _ in range(200)}
        return [(DISTRICT + district, READ)] + [(STOCK + warehouse * ITEMS + item, READ)
                                                for item in stock], 200

    mix = ([new_order] * 45 + [payment] * 43 + [order_status] * 4 + [delivery] * 4
           + [stock_level] * 4)

    def draw(random):
        warehouse = random.randrange(warehouses)
        district = warehouse * DISTRICTS + random.randrange(DISTRICTS)
        return random.choice(mix)(random, warehouse, district)

    return draw
