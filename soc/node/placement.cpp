#include "soc/node/placement.h"

#include <numa.h>

namespace atolldb {

int32_t numa_node_of(const Config& config, uint32_t node, const Machine& machine) {
  if (machine.numa_nodes.size() < 2) return -1;
  const int32_t configured = config.nodes[node].numa_node;
  return configured >= 0 ? configured : machine.numa_nodes[node % machine.numa_nodes.size()];
}

std::vector<int32_t> worker_cpus(const Config& config, uint32_t node, uint32_t ordinal,
                                 const Machine& machine) {
  const std::vector<int32_t>& configured = config.nodes[node].cpus;
  if (!configured.empty()) return {configured[ordinal % configured.size()]};
  const int32_t numa_node = numa_node_of(config, node, machine);
  if (numa_node < 0 || numa_available() < 0) return {};
  std::vector<int32_t> cpus;
  bitmask* mask = numa_allocate_cpumask();
  if (numa_node_to_cpus(numa_node, mask) == 0) {
    for (const int32_t cpu : machine.cpus) {
      if (numa_bitmask_isbitset(mask, static_cast<unsigned>(cpu))) cpus.push_back(cpu);
    }
  }
  numa_free_cpumask(mask);
  return cpus;
}

}  // namespace atolldb
