// The contents of the initial rows (clause 4.3.3.1).
#include "bench/tpcc/load.h"

namespace atolldb::tpcc {

namespace {
constexpr int64_t kCreditLimit = 5'000'000;
constexpr int64_t kInitialPayment = 1'000;
}  // namespace

ItemRow RowMaker::item(bool original) {
  ItemRow row{};
  row.im_id = random_.uniform(1, 10'000);
  row.price = static_cast<int32_t>(random_.uniform(100, 10'000));
  a_string(random_, row.name, 14, 24);
  a_string(random_, row.data, 26, 50);
  if (original) plant_original(random_, row.data);
  return row;
}

Address RowMaker::address() {
  Address address{};
  a_string(random_, address.street_1, 10, 20);
  a_string(random_, address.street_2, 10, 20);
  a_string(random_, address.city, 10, 20);
  a_string(random_, address.state, 2);
  zip_code(random_, address.zip);
  return address;
}

PlaceRow RowMaker::place() {
  PlaceRow row{};
  row.tax = static_cast<int32_t>(random_.uniform(0, 2'000));
  a_string(random_, row.name, 6, 10);
  row.address = address();
  return row;
}

StockRow RowMaker::stock() { return {static_cast<int32_t>(random_.uniform(10, 100)), 0, 0, 0}; }

StockInfoRow RowMaker::stock_info(bool original) {
  StockInfoRow row{};
  for (Text<24>& dist : row.dist) a_string(random_, dist, 24);
  a_string(random_, row.data, 26, 50);
  if (original) plant_original(random_, row.data);
  return row;
}

NewCustomer RowMaker::customer(uint32_t w, uint32_t d, uint32_t c, bool bad_credit) {
  NewCustomer made{};
  CustomerIdentity& identity = made.row.identity;
  const uint32_t names = scale_.last_names;
  identity.last =
      last_name(c <= names ? c - 1 : random_.nurand(255, constants_.last_name, 0, names - 1));
  identity.middle.assign("OE");
  a_string(random_, identity.first, 8, 16);
  identity.credit.assign(bad_credit ? "BC" : "GC");
  identity.discount = static_cast<int32_t>(random_.uniform(0, 5'000));
  made.row.address = address();
  fill_digits(random_, made.row.phone.bytes, 16);
  made.row.since = now_;
  made.row.credit_lim = kCreditLimit;

  made.balance.balance = -kInitialPayment;
  made.balance.ytd_payment = kInitialPayment;
  made.balance.payment_cnt = 1;

  a_string(random_, made.data.data, 300, 500);

  HistoryRow& history = made.history;
  history.date = now_;
  history.amount = kInitialPayment;
  history.c_id = static_cast<uint16_t>(c);
  history.c_w_id = history.w_id = static_cast<uint16_t>(w);
  history.c_d_id = history.d_id = static_cast<uint8_t>(d);
  a_string(random_, history.data, 12, 24);
  return made;
}

NewOrderRows RowMaker::order(uint32_t w, uint32_t o, uint32_t c) {
  NewOrderRows made{};
  made.o_id = o;
  made.delivered = o <= scale_.delivered_orders();
  made.row.entry_d = now_;
  made.row.c_id = static_cast<uint16_t>(c);
  made.row.carrier_id = made.delivered ? static_cast<uint8_t>(random_.uniform(1, 10)) : uint8_t{0};
  made.row.ol_cnt = static_cast<uint16_t>(random_.uniform(kMinLines, scale_.max_lines));
  made.row.all_local = 1;
  made.lines.resize(made.row.ol_cnt);
  for (OrderLineRow& line : made.lines) {
    line.i_id = random_.uniform(1, scale_.items);
    line.supply_w_id = static_cast<uint16_t>(w);
    line.quantity = 5;
    line.delivery_d = made.delivered ? now_ : 0;
    line.amount = made.delivered ? 0 : static_cast<int32_t>(random_.uniform(1, 999'999));
    a_string(random_, line.dist_info, 24);
  }
  return made;
}

}  // namespace atolldb::tpcc
