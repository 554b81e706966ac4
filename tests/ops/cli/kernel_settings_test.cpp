// Advice about settings of the kernel, from made folders like /proc/sys and /sys.
#include "ops/cli/kernel_settings.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "tests/cluster/cluster_folder.h"

namespace atolldb::cli {
namespace {

class KernelSettingsTest : public ::testing::Test {
 protected:
  KernelSettingsTest() { std::printf("seed: none, nothing here is random\n"); }

  void set(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root() / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }
  std::filesystem::path root() const { return folder_.path(); }
  /// Returns the finding of this name, or one that says "absent".
  Finding find(const std::string& what, size_t numa_nodes = 1) const {
    for (const Finding& finding : kernel_findings(root(), numa_nodes)) {
      if (finding.what == what) return finding;
    }
    return {true, what, "absent"};
  }

  test::TestFolder folder_;
};

TEST_F(KernelSettingsTest, SettingsThatTheKernelDoesNotHaveAreLeftOut) {
  EXPECT_TRUE(kernel_findings(root(), 2).empty());
  EXPECT_EQ(boot_command(kernel_findings(root(), 2)), "");
}

TEST_F(KernelSettingsTest, AValueAtTheLimitIsGoodAndOnePastItIsNot) {
  set("proc/sys/vm/max_map_count", "65530");
  EXPECT_TRUE(find("vm.max_map_count").is_good);
  set("proc/sys/vm/max_map_count", "65529");
  const Finding low = find("vm.max_map_count");
  EXPECT_FALSE(low.is_good);
  EXPECT_EQ(low.found, "65529");
  EXPECT_TRUE(low.advice.ends_with("sysctl -w vm.max_map_count=65530")) << low.advice;
  EXPECT_EQ(boot_command({low}),
            "printf '%s\\n' vm.max_map_count=65530 > /etc/sysctl.d/60-atoll.conf");
  set("proc/sys/vm/overcommit_memory", "1");
  EXPECT_TRUE(find("vm.overcommit_memory").is_good);
  set("proc/sys/vm/overcommit_memory", "2");
  EXPECT_FALSE(find("vm.overcommit_memory").is_good);
  set("proc/sys/kernel/io_uring_disabled", "1");
  EXPECT_FALSE(find("kernel.io_uring_disabled").is_good);
}

TEST_F(KernelSettingsTest, SwappingMattersOnlyWithSwapSpace) {
  set("proc/sys/vm/swappiness", "60");
  set("proc/swaps", "Filename Type Size Used Priority");
  EXPECT_EQ(find("vm.swappiness").found, "absent");
  set("proc/swaps", "Filename Type Size Used Priority\n/dev/sda2 partition 1000 0 -2");
  EXPECT_FALSE(find("vm.swappiness").is_good);
  set("proc/sys/vm/swappiness", "10");
  EXPECT_TRUE(find("vm.swappiness").is_good);
  set("proc/sys/vm/swappiness", "11");
  EXPECT_FALSE(find("vm.swappiness").is_good);
}

TEST_F(KernelSettingsTest, NumaSettingsMatterOnlyWithSeveralNodes) {
  set("proc/sys/kernel/numa_balancing", "1");
  set("proc/sys/vm/zone_reclaim_mode", "1");
  EXPECT_EQ(find("kernel.numa_balancing", 1).found, "absent");
  EXPECT_FALSE(find("kernel.numa_balancing", 2).is_good);
  EXPECT_FALSE(find("vm.zone_reclaim_mode", 2).is_good);
  EXPECT_EQ(boot_command(kernel_findings(root(), 2)),
            "printf '%s\\n' kernel.numa_balancing=0 vm.zone_reclaim_mode=0"
            " > /etc/sysctl.d/60-atoll.conf");
}

TEST_F(KernelSettingsTest, AllGovernorsAndHugePagesAreNamed) {
  set("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "performance");
  EXPECT_TRUE(find("CPU governor").is_good);
  set("sys/devices/system/cpu/cpufreq/policy1/scaling_governor", "powersave");
  const Finding mixed = find("CPU governor");
  EXPECT_FALSE(mixed.is_good);
  EXPECT_EQ(mixed.found, "performance (1), powersave (1)");
  set("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never");
  EXPECT_TRUE(find("huge pages (private)").is_good);
  set("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]");
  EXPECT_FALSE(find("huge pages (private)").is_good);
}

}  // namespace
}  // namespace atolldb::cli
