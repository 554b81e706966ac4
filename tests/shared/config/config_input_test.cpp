// Config files: syntax errors, relations between values, and limits of the machine.
#include <gtest/gtest.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "shared/base/limits.h"
#include "shared/base/path_errors.h"
#include "shared/config/config.h"
#include "shared/config/config_keys.h"
#include "shared/config/config_values.h"

namespace atolldb {
namespace {

constexpr uint64_t kGiB = 1ULL << 30;

/// Two NUMA nodes, CPUs 0-3 and 6, 8 GiB.
Machine small_machine() { return {{0, 1}, {0, 1, 2, 3, 6}, 8 * kGiB}; }

std::string errors_of(std::string_view text) {
  const auto config = parse_config(text, "/x/t.toml", small_machine());
  return config ? "" : to_string(config.error());
}

Config parsed(std::string_view text) {
  auto config = parse_config(text, "/x/t.toml", small_machine());
  EXPECT_TRUE(config) << to_string(config.error());
  return config ? *config : Config{};
}

struct BadInput {
  const char* name;
  std::string text;
  std::string message;
};

class BadFile : public testing::TestWithParam<BadInput> {};

TEST_P(BadFile, GetsExactlyThisMessage) {
  EXPECT_EQ(errors_of(GetParam().text), GetParam().message);
}

std::string node_tables(int count) {
  std::string text;
  for (int node = 0; node < count; ++node) text += "[[node]]\n";
  return text;
}

const BadInput kBadInputs[] = {
    {"UnknownSection", "[clustr]\n",
     "/x/t.toml:1:2: clustr: expected a section of the config, got an unknown name; did you mean "
     "cluster?\n"},
    {"UnknownSectionLikeNothing", "[zzzzzzzzz]\n",
     "/x/t.toml:1:2: zzzzzzzzz: expected a section of the config, got an unknown name\n"},
    {"KeyOutsideOfItsSection", "epoch = \"10ms\"\n",
     "/x/t.toml:1:1: epoch: expected a section of the config, got an unknown name; did you mean "
     "cluster.epoch?\n"},
    {"SectionThatIsAValue", "memory = 3\n",
     "/x/t.toml:1:10: memory: expected a table, got 3; write [memory]\n"},
    {"NodeAsATable", "[node]\nworkers = 1\n",
     "/x/t.toml:1:1: node: expected [[node]] tables, got a table; write [[node]] once for each "
     "node\n"},
    {"NodeAsAListOfNumbers", "node = [1]\n",
     "/x/t.toml:1:8: node: expected [[node]] tables, got a list; write [[node]] once for each "
     "node\n"},
    {"NoNodes", "node = []\n", "/x/t.toml:1:8: node: expected 1 to 255 tables, got 0\n"},
    {"TooManyNodes", node_tables(256), "/x/t.toml:1:1: node: expected 1 to 255 tables, got 256\n"},
    {"CountAndTables", "[nodes]\ncount = 1\n[[node]]\n",
     "/x/t.toml:2:9: nodes.count: expected either [nodes] count or [[node]] tables, got both\n"},
    {"MissingCpu", "[[node]]\ncpus = [5]\n",
     "/x/t.toml:2:8: node[0].cpus: expected CPUs that this process may use (0-3, 6), got 5\n"},
    {"CpuTwiceInANode", "[[node]]\ncpus = [1, 1]\n",
     "/x/t.toml:2:12: node[0].cpus: expected a list of different integers from 0 to 8191, got 1; "
     "it is in the list twice\n"},
    {"CpuInTwoNodes", "[[node]]\ncpus = [1]\n[[node]]\ncpus = [0, 1]\n",
     "/x/t.toml:4:8: node[1].cpus: expected CPUs that no other node uses, got 1; node[0].cpus has "
     "it too\n"},
    {"CpuAboveTheLimit", "[[node]]\ncpus = [8192]\n",
     "/x/t.toml:2:9: node[0].cpus: expected a list of different integers from 0 to 8191, got "
     "8192\n"},
    {"MoreWorkersThanANodeHasSlots", "[[node]]\nworkers = 251\n",
     "/x/t.toml:2:11: node[0].workers: expected an integer from 1 to 250, got 251\n"},
    {"MoreWritesThanATransactionMayHave", "[memory]\nwrite_set = 65536\n",
     "/x/t.toml:2:13: memory.write_set: expected an integer from 16 to 65535, got 65536\n"},
    {"CpuBelowTheLimit", "[[node]]\ncpus = [-1]\n",
     "/x/t.toml:2:9: node[0].cpus: expected a list of different integers from 0 to 8191, got -1\n"},
    {"MissingCpuOfTheGleaner", "[[node]]\ngleaner_cpus = [3, 5]\n",
     "/x/t.toml:2:16: node[0].gleaner_cpus: expected CPUs that this process may use (0-3, 6), got "
     "5\n"},
    {"CpuOfTheGleanerAboveTheLimit", "[[node]]\ngleaner_cpus = [8192]\n",
     "/x/t.toml:2:17: node[0].gleaner_cpus: expected a list of different integers from 0 to 8191, "
     "got 8192\n"},
    {"PacingThatIsANumber", "[gleaner]\npacing = 1\n",
     "/x/t.toml:2:10: gleaner.pacing: expected true or false, got 1\n"},
    {"MissingNumaNode", "[[node]]\nnuma_node = 2\n",
     "/x/t.toml:2:13: node[0].numa_node: expected -1 or a NUMA node of this machine (0-1), got "
     "2\n"},
    {"PoolsLargerThanMemory", "[memory]\nvolatile_pool = \"4GiB\"\n",
     "/x/t.toml:2:17: memory.volatile_pool: expected pools, caches and buffers of at most this "
     "machine's 8GiB in all, got 8532MiB; 8GiB are volatile pools (2 nodes), 128MiB snapshot "
     "caches, 148MiB tables of their frames and of pages that pools lend, 32MiB log buffers (2 "
     "workers), 32MiB exchange (4 reducers)\n"},
    {"BuffersLargerThanMemory", "[memory]\nlog_buffer = \"1GiB\"\n[[node]]\nworkers = 8\n",
     "/x/t.toml:2:14: memory.log_buffer: expected pools, caches and buffers of at most this "
     "machine's 8GiB in all, got 8818MiB; 512MiB are volatile pools (1 nodes), 64MiB snapshot "
     "caches, 10MiB tables of their frames and of pages that pools lend, 8GiB log buffers (8 "
     "workers), 40MiB exchange (5 reducers)\n"},
    {"ExchangeLargerThanMemory", "[memory]\nexchange = \"1GiB\"\n[[node]]\nreducers = 8\n",
     "/x/t.toml:2:12: memory.exchange: expected pools, caches and buffers of at most this "
     "machine's 8GiB in all, got 8794MiB; 512MiB are volatile pools (1 nodes), 64MiB snapshot "
     "caches, 10MiB tables of their frames and of pages that pools lend, 16MiB log buffers (1 "
     "workers), 8GiB exchange (8 reducers)\n"},
    {"CachesLargerThanMemory", "[memory]\nsnapshot_cache = \"8TiB\"\n",
     "/x/t.toml:2:18: memory.snapshot_cache: expected pools, caches and buffers of at most this "
     "machine's 8GiB in all, got 17060940MiB; 1GiB are volatile pools (2 nodes), 16TiB snapshot "
     "caches, 282636MiB tables of their frames and of pages that pools lend, 32MiB log buffers (2 "
     "workers), 32MiB exchange (4 reducers)\n"},
    // Pools and caches alone fit exactly. The tables of the frames do not.
    {"TablesOfFramesDoNotFit",
     "[memory]\nvolatile_pool = \"4000MiB\"\nsnapshot_cache = \"64MiB\"\nlend_pool = false\n",
     "/x/t.toml:2:17: memory.volatile_pool: expected pools, caches and buffers of at most this "
     "machine's 8GiB in all, got 8194MiB; 8000MiB are volatile pools (2 nodes), 128MiB snapshot "
     "caches, 2MiB tables of their frames, 32MiB log buffers (2 workers), 32MiB exchange (4 "
     "reducers)\n"},
    {"HangLimitBelowHeartbeats", "[cluster]\nheartbeat = \"1s\"\nhang_limit = \"2999ms\"\n",
     "/x/t.toml:3:14: cluster.hang_limit: expected at least 3 times cluster.heartbeat (\"1s\"), "
     "got \"2999ms\"\n"},
    {"HangLimitThatIsWrongAnyway", "[cluster]\nheartbeat = \"10s\"\nhang_limit = 1\n",
     "/x/t.toml:3:14: cluster.hang_limit: expected a time from \"500ms\" to \"1h\", a multiple of "
     "\"1ms\", got 1; times are written \"10ms\" (us, ms, s, min, h)\n"},
    {"PagesAreDroppedBeforeThereAreTooFew",
     "[gleaner]\npool_low_water = 30\npool_high_water = 30\n",
     "/x/t.toml:3:19: gleaner.pool_high_water: expected more than gleaner.pool_low_water (30), got "
     "30\n"},
    {"TwoArchives", "[archive]\ndirectory = \"/a\"\ncommand = \"cp %p /a/%f\"\n",
     "/x/t.toml:3:11: archive.command: expected either archive.directory or archive.command, got "
     "both; remove one of them\n"},
    {"ArchiveCommandWithoutPath", "[archive]\ncommand = \"true %f\"\n",
     "/x/t.toml:2:11: archive.command: expected a command with %p (path of the file) and %f (its "
     "name in the archive), got no %p; write %% for a percent sign\n"},
    {"ArchiveCommandWithoutName", "[archive]\ncommand = \"cp %p /a 100%%\"\n",
     "/x/t.toml:2:11: archive.command: expected a command with %p (path of the file) and %f (its "
     "name in the archive), got no %f; write %% for a percent sign\n"},
    {"ArchiveCommandThatEndsInAPercentSign", "[archive]\ncommand = \"cp %p %f %\"\n",
     "/x/t.toml:2:11: archive.command: expected a command with %p (path of the file) and %f (its "
     "name in the archive), got a % that is none of them; write %% for a percent sign\n"},
    {"ArchiveWithoutALog", "[archive]\ndirectory = \"/a\"\n[durability]\nmode = \"off\"\n",
     "/x/t.toml:2:13: archive.directory: expected durability.mode = \"durable\" with an archive, "
     "got \"off\"; there is no log to archive\n"},
    {"ArchiveAmongTheData",
     "[cluster]\ndata_dir = \"/data\"\n[archive]\ndirectory = \"/data/archive\"\n",
     "/x/t.toml:4:13: archive.directory: expected a folder outside of cluster.data_dir "
     "(\"/data\"), got \"/data/archive\"; an archive outlives the data: use another device\n"},
    {"PortsBeyondTheLast", "[metrics]\nbase_port = 65534\n",
     "/x/t.toml:2:13: metrics.base_port: expected 0, or at most 65533 with 2 nodes, got 65534\n"},
    {"PortOfTheMetrics", "[metrics]\nbase_port = 9000\n[status_page]\nport = 9002\n",
     "/x/t.toml:4:8: status_page.port: expected a port outside of those of the metrics (9000 to "
     "9002), got 9002; change it, or metrics.base_port\n"},
    {"SizeWithoutUnit", "[memory]\nvolatile_pool = \"512\"\n",
     "/x/t.toml:2:17: memory.volatile_pool: expected a size from \"2MiB\" to \"8TiB\", a multiple "
     "of \"2MiB\", got \"512\"; sizes are written \"512MiB\" (B, KiB, MiB, GiB, TiB)\n"},
    {"SizeBeyond63Bits", "[memory]\nvolatile_pool = \"9999999999TiB\"\n",
     "/x/t.toml:2:17: memory.volatile_pool: expected a size from \"2MiB\" to \"8TiB\", a multiple "
     "of \"2MiB\", got \"9999999999TiB\"; sizes are written \"512MiB\" (B, KiB, MiB, GiB, TiB)\n"},
    {"NegativeTime", "[cluster]\nepoch = \"-10ms\"\n",
     "/x/t.toml:2:9: cluster.epoch: expected a time from \"1ms\" to \"1s\", got \"-10ms\"; times "
     "are written \"10ms\" (us, ms, s, min, h)\n"},
    {"ShortestEpochTooShort", "[cluster]\nepoch_min = \"99us\"\n",
     "/x/t.toml:2:13: cluster.epoch_min: expected a time from \"100us\" to \"1s\", got \"99us\"\n"},
    {"ChoiceMisspelt", "[memory]\nhuge_pages = \"advice\"\n",
     "/x/t.toml:2:14: memory.huge_pages: expected one of \"off\", \"advise\", \"require\", got "
     "\"advice\"; did you mean \"advise\"?\n"},
    {"NameWithASlash", "[cluster]\nname = \"a/b\"\n",
     "/x/t.toml:2:8: cluster.name: expected 1 to 32 letters, digits, \"_\" or \"-\", got "
     "\"a/b\"\n"},
    {"DurableIntoTheNullLog", "[durability]\nmode = \"durable\"\nbackend = \"null\"\n",
     "/x/t.toml:3:11: durability.backend: expected \"posix\" or \"pmem\" with mode = \"durable\", "
     "got \"null\"; null keeps nothing and is for measuring only: with it, set mode = "
     "\"measure\"\n"},
    {"MeasuringWithADevice", "[durability]\nmode = \"measure\"\n",
     "/x/t.toml:2:8: durability.mode: expected backend = \"null\" with mode = \"measure\", got "
     "\"measure\"; set backend = \"null\" to measure without a device, or mode = \"durable\"\n"},
    {"MoreLoggersThanWorkers", "[[node]]\nworkers = 2\n[[node]]\nworkers = 2\nloggers = 3\n",
     "/x/t.toml:5:11: node[1].loggers: expected at most as many as the node has workers (2), got "
     "3; "
     "each logger writes the log of at least one worker\n"},
    {"MoreLoggersThanTheLimit", "[[node]]\nworkers = 20\nloggers = 17\n",
     "/x/t.toml:3:11: node[0].loggers: expected an integer from 1 to 16, got 17\n"},
    {"LogFileOfHalfABlock", "[durability]\nlog_file_size = \"1025KiB\"\n",
     "/x/t.toml:2:17: durability.log_file_size: expected a size from \"1MiB\" to \"64GiB\", a "
     "multiple of \"4KiB\", got \"1025KiB\"\n"},
    {"RecoveryWithoutALog", "[cluster]\nrestart = \"recover\"\n[durability]\nmode = \"off\"\n",
     "/x/t.toml:2:11: cluster.restart: expected \"never\" without mode = \"durable\", got "
     "\"recover\"; nothing is kept that a restart could recover\n"},
    {"PayloadMemoryBelowAnOutput",
     "[procedures]\nmax_output = \"512MiB\"\npayload_memory = \"256MiB\"\n",
     "/x/t.toml:3:18: procedures.payload_memory: expected at least procedures.max_input and "
     "procedures.max_output together (\"576MiB\"), got \"256MiB\"; a call holds its input while "
     "it makes its output\n"},
    {"PayloadMemoryBelowAnInputAndAnOutput",
     "[procedures]\nmax_input = \"1MiB\"\nmax_output = \"3MiB\"\npayload_memory = \"4095KiB\"\n",
     "/x/t.toml:4:18: procedures.payload_memory: expected at least procedures.max_input and "
     "procedures.max_output together (\"4MiB\"), got \"4095KiB\"; a call holds its input while "
     "it makes its output\n"},
    {"LibraryTwice", "[procedures]\nlibraries = [\"/a/b\", \"/a/./b\"]\n",
     "/x/t.toml:2:22: procedures.libraries: expected a list of different paths of 1 to 1024 "
     "bytes, got \"/a/./b\"; it is in the list twice\n"},
    {"LibraryThatIsANumber", "[procedures]\nlibraries = [\"/a\", 1]\n",
     "/x/t.toml:2:20: procedures.libraries: expected a list of different paths of 1 to 1024 "
     "bytes, got 1\n"},
    {"AllMistakesInTheOrderOfTheirLines",
     "[log]\nlevel = \"loud\"\n[cluster]\nepoch = 5\n[memory]\nread_sets = 1\n",
     "/x/t.toml:2:9: log.level: expected one of \"trace\", \"debug\", \"info\", \"warn\", "
     "\"error\", \"critical\", \"off\", got \"loud\"\n"
     "/x/t.toml:4:9: cluster.epoch: expected a time from \"1ms\" to \"1s\", got 5; times are "
     "written \"10ms\" (us, ms, s, min, h)\n"
     "/x/t.toml:6:1: memory.read_sets: expected a key of [memory], got an unknown name; did you "
     "mean read_set?\n"},
};

INSTANTIATE_TEST_SUITE_P(Config, BadFile, testing::ValuesIn(kBadInputs),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(BadSyntax, IsReportedWithItsPlace) {
  for (const char* text : {"[cluster\n", "\n\n= 3\n", "a = \"\n", "[cluster]\nname = 1\nname = 2\n",
                           "\xff\xfe\n", "[cluster]\nname = \"a\" x\n"}) {
    const auto config = parse_config(text, "t.toml", small_machine());
    ASSERT_FALSE(config) << text;
    ASSERT_EQ(config.error().size(), 1U);
    EXPECT_GT(config.error()[0].line, 0U);
    EXPECT_TRUE(config.error()[0].to_string().starts_with("t.toml:"));
    EXPECT_NE(config.error()[0].to_string().find("expected a TOML file, got "), std::string::npos);
  }
}

TEST(BadSyntax, NeitherDeepNestingNorANulByteCrashes) {
  EXPECT_NE(errors_of("a = " + std::string(10'000, '[')), "");
  EXPECT_NE(errors_of(std::string_view("[cluster]\nname = \"a\0b\"\n", 24)), "");
}

TEST(PayloadMemory, MayBeTheLongestInputAndOutputTogether) {
  EXPECT_EQ(errors_of("[procedures]\nmax_input = \"1MiB\"\nmax_output = \"3MiB\"\n"
                      "payload_memory = \"4MiB\"\n"),
            "");
}

TEST(UnusedSettings, AreTheUsersValuesForTheOtherScheme) {
  EXPECT_TRUE(unused_settings(parsed("")).empty());
  const Config silor = parsed(
      "[durability]\nscheme = \"silor\"\ncheckpoint_interval = \"5s\"\n"
      "[gleaner]\ninterval = \"1h\"\ndisk_reserve = \"1GiB\"\n"
      // The scrub reads checkpoints and logs, too.
      "[snapshot]\nscrub_rate = \"1MiB\"\nscrub_interval = \"1h\"\n"
      "[[node]]\n[[node]]\nmappers = 2\n");
  const auto unused = unused_settings(silor);
  ASSERT_EQ(unused.size(), 2u);
  EXPECT_EQ(unused[0].key, "node[1].mappers");
  EXPECT_EQ(unused[0].value, "2");
  EXPECT_EQ(to_string(unused[1]),
            "gleaner.interval = \"1h\" has no effect: durability.scheme is \"silor\", which takes "
            "checkpoints and no snapshots");
  const auto of_gleaned =
      unused_settings(parsed("[durability]\ncheckpoint_files = 2\nreplay_order = \"oldest_first\"\n"
                             "[gleaner]\ninterval = \"1h\"\n"));
  ASSERT_EQ(of_gleaned.size(), 2u);
  EXPECT_EQ(of_gleaned[0].key, "durability.checkpoint_files");
  EXPECT_EQ(of_gleaned[1].key, "durability.replay_order");
  // The user has set the budget, and not its parts.
  const Config split = parsed("[durability]\nscheme = \"silor\"\n[memory]\ntotal = \"1GiB\"\n");
  ASSERT_TRUE(split.origins.contains("memory.snapshot_cache"));
  EXPECT_TRUE(unused_settings(split).empty());
}

TEST(ControlEndpoint, IsLocalOnly) {
  for (const char* good :
       {"tcp://127.0.0.1:5000", "tcp://127.9.9.9:1", "tcp://[::1]:65535", "ipc:///tmp/s"}) {
    EXPECT_EQ(errors_of("[control]\nendpoint = \"" + std::string(good) + "\"\n"), "");
  }
  for (const char* bad :
       {"tcp://0.0.0.0:5000", "tcp://10.0.0.1:5000", "tcp://*:5000", "tcp://127.0.0.1",
        "tcp://127.0.0.1:0", "tcp://127.0.0.1:65536", "tcp://127.0.0.1:5x", "ipc://s", "ipc:///",
        "udp://127.0.0.1:5", "/tmp/s"}) {
    EXPECT_NE(errors_of("[control]\nendpoint = \"" + std::string(bad) + "\"\n"), "") << bad;
  }
}

TEST(Paths, AreRelativeToTheFolderOfTheFile) {
  ASSERT_EQ(setenv("HOME", "/home/somebody", 1), 0);
  const Config config = parsed(
      "[cluster]\nrun_dir = \"run/../r\"\nlog_dir = \"~/logs/\"\n"
      "[[node]]\ndirectories = [\"/disk\", \"d\"]\n");
  EXPECT_EQ(config.cluster.run_dir, "/x/r");
  EXPECT_EQ(config.cluster.log_dir, "/home/somebody/logs");
  EXPECT_EQ(config.nodes[0].directories, (std::vector<std::string>{"/disk", "/x/d"}));
  EXPECT_EQ(config.control.endpoint, "ipc:///x/r/control.sock");
}

TEST(Paths, HaveDefaultsUnderTheUsersFolders) {
  ASSERT_EQ(setenv("HOME", "/home/somebody", 1), 0);
  ASSERT_EQ(setenv("XDG_RUNTIME_DIR", "/run/user/7", 1), 0);
  ASSERT_EQ(setenv("XDG_STATE_HOME", "relative-is-ignored", 1), 0);
  ASSERT_EQ(setenv("XDG_DATA_HOME", "/big", 1), 0);
  const Config config = parsed("[cluster]\nname = \"c\"\n");
  EXPECT_EQ(config.cluster.run_dir, "/run/user/7/atoll/c");
  EXPECT_EQ(config.cluster.log_dir, "/home/somebody/.local/state/atoll/c");
  EXPECT_EQ(config.cluster.data_dir, "/big/atoll/c");
  ASSERT_EQ(unsetenv("XDG_RUNTIME_DIR"), 0);
  EXPECT_EQ(parsed("").cluster.run_dir, "/tmp/atoll-" + std::to_string(getuid()) + "/atoll");
}

TEST(Paths, HaveDefaultsWithoutAnyVariable) {
  for (const char* name : {"HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_DATA_HOME"}) {
    ASSERT_EQ(unsetenv(name), 0);
  }
  const Config config = parsed("[cluster]\nname = \"c\"\n");
  EXPECT_EQ(config.cluster.run_dir, "/tmp/atoll-" + std::to_string(geteuid()) + "/c");
  const passwd* const user = getpwuid(geteuid());
  if (user != nullptr && user->pw_dir[0] == '/' && user->pw_dir[1] != '\0') {
    const std::string home = user->pw_dir;
    EXPECT_EQ(config.cluster.log_dir, home + "/.local/state/atoll/c");
    EXPECT_EQ(config.cluster.data_dir, home + "/.local/share/atoll/c");
    EXPECT_EQ(absolute_path("~/x", "/"), home + "/x");
  }
  EXPECT_NE(config.cluster.log_dir, config.cluster.data_dir);
  EXPECT_NE(config.cluster.log_dir, config.cluster.run_dir);
  EXPECT_NE(config.cluster.data_dir, config.cluster.run_dir);
}

TEST(Paths, OfOneFolderInSeveralVariablesDiffer) {
  ASSERT_EQ(setenv("XDG_STATE_HOME", "/one", 1), 0);
  ASSERT_EQ(setenv("XDG_DATA_HOME", "/one", 1), 0);
  const Config config = parsed("[cluster]\nname = \"c\"\n");
  EXPECT_EQ(config.cluster.data_dir, "/one/atoll/c");
  EXPECT_EQ(config.cluster.log_dir, "/one/atoll/c-logs");
  ASSERT_EQ(unsetenv("XDG_STATE_HOME"), 0);
  ASSERT_EQ(unsetenv("XDG_DATA_HOME"), 0);
}

TEST(Paths, OfRunLogAndDataFoldersAreApart) {
  const auto folders = [](const std::string& run, const std::string& log, const std::string& data) {
    return errors_of("[cluster]\nrun_dir = \"" + run + "\"\nlog_dir = \"" + log +
                     "\"\ndata_dir = \"" + data + "\"\n");
  };
  EXPECT_EQ(folders("/a/run", "/a/log", "/a/data"), "");
  EXPECT_EQ(folders("/a/data-run", "/a/data/log", "/a/data"), "");
  for (const std::string& text :
       {folders("/a", "/l", "/a"), folders("/a", "/l", "/a/data"), folders("/d/run", "/l", "/d")}) {
    EXPECT_NE(text.find("cluster.data_dir: expected a folder apart from cluster.run_dir"),
              std::string::npos)
        << text;
  }
  for (const std::string& text : {folders("/a", "/a", "/d"), folders("/a", "/a/log", "/d")}) {
    EXPECT_NE(text.find("cluster.log_dir: expected a folder apart from cluster.run_dir"),
              std::string::npos)
        << text;
  }
  EXPECT_NE(folders("/r", "/d", "/d/.")
                .find("cluster.data_dir: expected a folder apart from "
                      "cluster.log_dir"),
            std::string::npos);
  const std::string node = errors_of(
      "[cluster]\nrun_dir = \"/r\"\nlog_dir = \"/l\"\ndata_dir = \"/d\"\n[[node]]\n"
      "directories = [\"/r/disk\"]\n");
  EXPECT_NE(node.find("node[0].directories: expected a folder apart from cluster.run_dir"),
            std::string::npos)
      << node;
}

TEST(Paths, OfTheEnvironmentThatAreTooLongForSocketsAreAnError) {
  const std::string folder = "/" + std::string(90, 'a');
  ASSERT_EQ(setenv("XDG_RUNTIME_DIR", folder.c_str(), 1), 0);
  EXPECT_EQ(
      errors_of(""),
      "/x/t.toml: cluster.run_dir: expected a path of at most 83 bytes (names of Unix sockets "
      "are short), got \"" +
          folder + "/atoll/atoll\"; set cluster.run_dir or XDG_RUNTIME_DIR\n");
  ASSERT_EQ(unsetenv("XDG_RUNTIME_DIR"), 0);
}

class ConfigFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "atoll-config-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& text) const {
    std::ofstream(folder_ / "c.toml") << text;
    return folder_ / "c.toml";
  }
  static std::string error_of(const std::string& path) {
    const auto config = load_config(path, small_machine());
    return config ? "" : to_string(config.error());
  }

  std::filesystem::path folder_;
};

TEST_F(ConfigFile, MayBeEmpty) {
  const auto config = load_config(write(""), small_machine());
  ASSERT_TRUE(config);
  EXPECT_EQ(to_toml(*config), to_toml(default_config(small_machine())));
}

TEST_F(ConfigFile, ThatIsMissingIsNamed) {
  const std::string path = folder_ / "none.toml";
  EXPECT_EQ(error_of(path), path + ": expected a readable file, got No such file or directory\n");
}

TEST_F(ConfigFile, ThatIsAFolderIsNamed) {
  EXPECT_EQ(error_of(folder_), folder_.string() + ": expected a readable file, got a folder\n");
}

TEST_F(ConfigFile, ThatMayNotBeReadIsNamed) {
  const std::string path = write("");
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  // Root may read everything, so root changes its user for the attempt.
  constexpr uid_t kNobody = 65'534;
  const bool is_root = geteuid() == 0;
  if (is_root) {
    ASSERT_EQ(seteuid(kNobody), 0);
  }
  const std::string text = error_of(path);
  if (is_root) {
    ASSERT_EQ(seteuid(0), 0);
  }
  EXPECT_TRUE(text.starts_with(path + ": expected a readable file, got Permission denied ("))
      << text;
  const std::string owner = " belongs to " + user_text(geteuid()) + " with mode ";
  EXPECT_NE(text.find(owner), std::string::npos) << text;
  EXPECT_NE(text.find("and this is "), std::string::npos) << text;
}

TEST_F(ConfigFile, IsRejectedAboveItsLimitAndAcceptedAtIt) {
  const auto limit = static_cast<size_t>(config_limits::kMaxFileBytes);
  EXPECT_EQ(error_of(write(std::string(limit, '\n'))), "");
  const std::string path = write(std::string(limit + 1, '\n'));
  EXPECT_EQ(error_of(path), path + ": expected a file of at most 1MiB, got a larger one\n");
}

TEST(ReadyConfigs, AreValidOnAMachineOfTheirSize) {
  Machine large = {{0, 1}, {}, 128 * kGiB};
  for (int32_t cpu = 0; cpu < 32; ++cpu) large.cpus.push_back(cpu);
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(ATOLL_SOURCE_DIR "/configs")) {
    if (entry.path().extension() != ".toml") continue;
    const auto config = load_config(entry.path(), large);
    EXPECT_TRUE(config) << to_string(config.error());
    ++count;
  }
  EXPECT_GE(count, 7U);
}

TEST(Durability, IsOnByDefaultAndIsNamedAsWhatItIs) {
  EXPECT_EQ(durability_text(parsed("")), "durable");
  EXPECT_EQ(durability_text(parsed("[durability]\nmode = \"off\"\n")), "off");
  EXPECT_EQ(durability_text(parsed("[durability]\nmode = \"durable\"\n")), "durable");
  EXPECT_EQ(
      durability_text(parsed("[durability]\nmode = \"durable\"\nemulated_latency = \"5us\"\n")),
      "durable (emulated latency 5us)");
  EXPECT_EQ(durability_text(parsed("[durability]\nemulated_latency = \"5us\"\nnvm_read_ns = 100\n"
                                   "nvm_write_ns = 200\nnvm_block_ns = 300\n")),
            "durable (emulated latency 5us, emulated NVRAM 100 ns per page read, emulated NVRAM "
            "200 ns per write, emulated NVRAM 300 ns per block write)");
  EXPECT_EQ(durability_text(parsed("[durability]\nmode = \"measure\"\nbackend = \"null\"\n")),
            "null log: nothing is durable");
}

TEST(Durability, HasASchemeWhoseCheckpointsMayBeOff) {
  EXPECT_EQ(parsed("").durability.scheme, DurabilityScheme::gleaned);
  const Config config = parsed(
      "[durability]\nscheme = \"silor\"\ncheckpoint_interval = \"0ms\"\n"
      "checkpoint_volume = \"0B\"\ncheckpoint_threads = 5\ncheckpoint_files = 64\n"
      "checkpoint_sync_volume = \"0B\"\ncheckpoint_pause = \"20ms\"\n"
      "replay_order = \"oldest_first\"\n");
  EXPECT_EQ(config.durability.scheme, DurabilityScheme::silor);
  EXPECT_EQ(config.durability.checkpoint_interval.get().count(), 0);
  EXPECT_EQ(config.durability.checkpoint_volume.get(), 0u);
  EXPECT_EQ(config.durability.checkpoint_threads, kMaxInstallers);
  EXPECT_EQ(config.durability.checkpoint_files, kMaxCheckpointFiles);
  EXPECT_EQ(parsed("").durability.checkpoint_files, 0u) << "the number is automatic";
  EXPECT_EQ(errors_of("[durability]\ncheckpoint_files = 0\n"), "");
  EXPECT_EQ(config.durability.checkpoint_sync_volume, 0u);
  EXPECT_EQ(config.durability.checkpoint_pause, std::chrono::milliseconds(20));
  EXPECT_EQ(config.durability.replay_order, ReplayOrder::oldest_first);
  EXPECT_EQ(parsed("").durability.replay_order, ReplayOrder::newest_first);
  EXPECT_NE(errors_of("[durability]\ncheckpoint_pause = \"2s\"\n"), "");
  EXPECT_NE(errors_of("[durability]\nreplay_order = \"random\"\n"), "");
  EXPECT_NE(errors_of("[durability]\ncheckpoint_threads = 6\n"), "");
  EXPECT_NE(errors_of("[durability]\ncheckpoint_files = 65\n"), "");
  EXPECT_NE(errors_of("[durability]\ncheckpoint_threads = 0\n"), "");
}

TEST(Durability, HasNoArchiveWithCheckpoints) {
  const std::string archive = "[archive]\ndirectory = \"/mnt/archive\"\n";
  EXPECT_EQ(errors_of(archive), "");
  EXPECT_NE(errors_of(archive + "[durability]\nscheme = \"silor\"\n").find("durability.scheme"),
            std::string::npos);
}

TEST(Durability, HasFilesInTheNodesDirectoriesInTurnOrElseInTheDataDirectory) {
  const Config config =
      parsed("[cluster]\ndata_dir = \"d\"\n[[node]]\n[[node]]\ndirectories = [\"a\", \"/b\"]\n");
  EXPECT_EQ(log_directory(config, 0, 0), "/x/d");
  EXPECT_EQ(log_directory(config, 0, 1), "/x/d");
  EXPECT_EQ(log_directory(config, 1, 0), "/x/a");
  EXPECT_EQ(log_directory(config, 1, 1), "/b");
  EXPECT_EQ(log_directory(config, 1, 2), "/x/a");
  EXPECT_EQ(node_directories(config), (std::vector<std::string>{"/x/a", "/b"}));
}

TEST(EffectiveConfig, SurvivesTheWayToAChildProcess) {
  const Config config = parsed(
      "[cluster]\nname = \"c-1\"\nepoch = \"1500us\"\nepoch_min = \"100us\"\n"
      "start_epoch = 68719476735\n"
      "[[node]]\nnuma_node = 1\ncpus = [3, 1]\ngleaner_cpus = [2, 1]\nworkers = 4\ndirectories = "
      "[\"/a \\\"b\\\\\"]\n"
      "[[node]]\n[memory]\nvolatile_pool = \"1026MiB\"\nhuge_pages = \"off\"\n"
      "[durability]\nmode = \"measure\"\nbackend = \"null\"\nlog_file_size = \"1028KiB\"\n"
      "emulated_latency = \"7us\"\nnvm_read_ns = 250\nnvm_write_ns = 10000000\n"
      "[metrics]\nenabled = false\nbase_port = 9000\n[procedures]\nlibraries = [\"/l/a.so\"]\n");
  const Config child = parsed(to_toml(config));
  EXPECT_EQ(child.cluster, config.cluster);
  EXPECT_EQ(child.nodes, config.nodes);
  EXPECT_EQ(child.memory, config.memory);
  EXPECT_EQ(child.durability, config.durability);
  EXPECT_EQ(child.durability.log_file_size, 1028U << 10);
  EXPECT_EQ(child.durability.emulated_latency, std::chrono::microseconds(7));
  EXPECT_EQ(child.metrics, config.metrics);
  EXPECT_EQ(child.procedures, config.procedures);
  EXPECT_EQ(child.control, config.control);
  EXPECT_EQ(config_digest(child), config_digest(config));
  EXPECT_EQ(config.cluster.epoch, std::chrono::microseconds(1500));
  EXPECT_EQ(config.cluster.epoch_min, std::chrono::microseconds(100));
  EXPECT_EQ(config.nodes[0].cpus, (std::vector<int32_t>{3, 1}));
  EXPECT_EQ(config.nodes[0].gleaner_cpus, (std::vector<int32_t>{2, 1}));
}

TEST(EffectiveConfig, IsShownWithOrigins) {
  const Config config = parsed("[memory]\nread_set = 99\n");
  const std::string text = show_config(config);
  EXPECT_NE(text.find("read_set = 99" + std::string(27, ' ') + "# /x/t.toml:2\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("write_set = 8192" + std::string(24, ' ') + "# default\n"), std::string::npos)
      << text;
  EXPECT_EQ(config_digest(parsed(text)), config_digest(config));
}

TEST(ThisMachine, ItsCpuQuotaIsParsed) {
  EXPECT_EQ(parse_cpu_max("150000 100000\n"), 1.5);
  EXPECT_EQ(parse_cpu_max("max 100000\n"), 0) << "no limit";
  for (const char* text : {"", "1", "0 100000", "100000 0", "-1 100000", "a b"}) {
    EXPECT_EQ(parse_cpu_max(text), 0) << text;
  }
}

TEST(ThisMachine, AQuotaOfAllCpusIsNone) {
  Machine machine = small_machine();
  EXPECT_FALSE(machine.has_cpu_quota());
  machine.cpu_quota = 5;
  EXPECT_FALSE(machine.has_cpu_quota());
  machine.cpu_quota = 4.5;
  EXPECT_TRUE(machine.has_cpu_quota());
}

TEST(ThisMachine, UsesAsManyCpusAsItsQuotaAllows) {
  Machine machine = small_machine();
  EXPECT_EQ(machine.usable_cpus(), 5u);
  for (const auto& [quota, usable] : {std::pair{8.0, 5u}, {4.5, 5u}, {2.5, 3u}, {0.25, 1u}}) {
    machine.cpu_quota = quota;
    EXPECT_EQ(machine.usable_cpus(), usable) << quota;
  }
}

TEST(ThisMachine, IsDetected) {
  const Machine machine = Machine::detect();
  EXPECT_FALSE(machine.cpus.empty());
  EXPECT_TRUE(machine.has_cpu(machine.cpus.front()));
  EXPECT_FALSE(machine.has_cpu(-1));
  EXPECT_TRUE(machine.has_numa_node(machine.numa_nodes.back()));
  EXPECT_GT(machine.memory_bytes, 1ULL << 27);
  EXPECT_LE(machine.cpus.size(), static_cast<size_t>(sysconf(_SC_NPROCESSORS_CONF)));
}

}  // namespace
}  // namespace atolldb
