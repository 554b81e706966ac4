#include "bench/tpcc/job_input.h"

#include <nlohmann/json.hpp>

#include "bench/tpcc/terminals.h"

namespace atolldb::tpcc {

std::string JobInput::to_json() const {
  nlohmann::json json{
      {"warehouses", warehouses},
      {"load_seed", load_seed},
      {"scale",
       {{"items", scale.items},
        {"customers", scale.customers},
        {"new_orders", scale.new_orders},
        {"last_names", scale.last_names},
        {"max_lines", scale.max_lines},
        {"hash_orders", scale.hash_orders}}},
      {"seed", seed},
      {"remote_line_percent", remote_line_percent},
      {"remote_payment_percent", remote_payment_percent},
      {"mix", mix},
      {"think_scale", think_scale},
  };
  times.put(json);
  return json.dump();
}

Result<JobInput> JobInput::parse(std::string_view text) {
  JobInput input;
  try {
    const auto json = nlohmann::json::parse(text);
    json.at("warehouses").get_to(input.warehouses);
    json.at("load_seed").get_to(input.load_seed);
    const auto& scale = json.at("scale");
    scale.at("items").get_to(input.scale.items);
    scale.at("customers").get_to(input.scale.customers);
    scale.at("new_orders").get_to(input.scale.new_orders);
    scale.at("last_names").get_to(input.scale.last_names);
    scale.at("max_lines").get_to(input.scale.max_lines);
    scale.at("hash_orders").get_to(input.scale.hash_orders);
    json.at("seed").get_to(input.seed);
    json.at("remote_line_percent").get_to(input.remote_line_percent);
    json.at("remote_payment_percent").get_to(input.remote_payment_percent);
    json.at("mix").get_to(input.mix);
    json.at("think_scale").get_to(input.think_scale);
    input.times.take(json);
  } catch (const nlohmann::json::exception& error) {
    return make_error(ExitCode::usage, std::string("tpcc: the job's input is wrong: ") +
                                           error.what() + ": use `atoll bench tpcc`");
  }
  const Scale& scale = input.scale;
  if (input.warehouses < 1 || input.warehouses > kMaxWarehouses || scale.items < 1 ||
      scale.items > kMaxItems || scale.customers < 1 || scale.customers > kMaxCustomers ||
      scale.new_orders > scale.customers || scale.last_names < 1 || scale.last_names > 1'000 ||
      scale.max_lines < kMaxLines || scale.max_lines > kMaxLoadedLines ||
      !(input.think_scale >= 0 && input.think_scale <= kMaxThinkScale)) {
    return make_error(ExitCode::usage,
                      "tpcc: the job's input has a size out of range: use `atoll bench tpcc`");
  }
  return input;
}

Workload JobInput::workload() const {
  return {scale,
          warehouses,
          remote_line_percent,
          remote_payment_percent,
          mix,
          NurandConstants::for_run(load_seed, seed)};
}

std::vector<uint32_t> warehouses_of_node(uint32_t warehouses, uint32_t node, uint32_t nodes) {
  std::vector<uint32_t> found;
  for (uint32_t w = node + 1; w <= warehouses; w += nodes) found.push_back(w);
  return found;
}

std::vector<uint32_t> owned_warehouses(uint32_t warehouses, uint32_t node, uint32_t nodes,
                                       uint32_t worker, uint32_t workers) {
  const std::vector<uint32_t> all = warehouses_of_node(warehouses, node, nodes);
  std::vector<uint32_t> found;
  for (size_t i = worker; i < all.size(); i += workers) found.push_back(all[i]);
  return found;
}

std::vector<uint32_t> served_warehouses(uint32_t warehouses, uint32_t node, uint32_t nodes,
                                        uint32_t worker, uint32_t workers) {
  std::vector<uint32_t> found = owned_warehouses(warehouses, node, nodes, worker, workers);
  if (!found.empty()) return found;
  const std::vector<uint32_t> all = warehouses_of_node(warehouses, node, nodes);
  if (!all.empty()) found.push_back(all[worker % all.size()]);
  return found;
}

}  // namespace atolldb::tpcc
