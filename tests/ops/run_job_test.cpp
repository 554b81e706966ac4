// Cluster::run_job: no node works on for a job whose caller has got an error.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <vector>

#include "ops/cluster/cluster.h"
#include "shared/client/session_client.h"

namespace atolldb {
namespace {

/// Nodes without processes. Node `failing` answers one of the requests with an error.
class FailingCluster final : public Cluster {
 public:
  FailingCluster(ControlOperation operation, uint32_t failing)
      : Cluster(config_of_nodes()), operation_(operation), failing_(failing) {}

  Result<Json> call(uint32_t node, ControlOperation operation, const Json& body,
                    std::chrono::milliseconds /*timeout*/) override {
    if (operation == operation_ && node == failing_) return make_error(ExitCode::failed, "planted");
    switch (operation) {
      case ControlOperation::job_start:
        return Json{{"job", 100 + node}};
      case ControlOperation::job_stop:
        EXPECT_EQ(body.value("job", 0u), 100 + node);
        stopped.push_back(node);
        return Json::object();
      default:
        return Json{{"done", true}, {"outputs", Json::array()}};
    }
  }
  Result<Json> coordinator(ControlOperation /*operation*/, const Json& /*body*/,
                           std::chrono::milliseconds /*timeout*/) override {
    return Json::object();
  }
  Result<std::unique_ptr<SessionClient>> connect_session(uint32_t node) override {
    return no_such_node(node);
  }
  Result<void> shutdown() override { return {}; }

  std::vector<uint32_t> stopped;  // nodes, in the order of the requests

 private:
  static Config config_of_nodes() {
    Config config = default_config();
    config.nodes.resize(3, config.nodes.front());
    return config;
  }

  const ControlOperation operation_;
  const uint32_t failing_;
};

TEST(RunJob, StopsTheJobsOfAllNodesAfterAnError) {
  FailingCluster waits(ControlOperation::job_wait, 1);
  const auto outputs = waits.run_job("any", "");
  ASSERT_FALSE(outputs);
  EXPECT_EQ(outputs.error().message, "planted");
  EXPECT_EQ(waits.stopped, (std::vector<uint32_t>{0, 1, 2}));
  FailingCluster starts(ControlOperation::job_start, 2);
  EXPECT_FALSE(starts.run_job("any", ""));
  EXPECT_EQ(starts.stopped, (std::vector<uint32_t>{0, 1}));
  FailingCluster works(ControlOperation::status, 0);
  EXPECT_TRUE(works.run_job("any", ""));
  EXPECT_TRUE(works.stopped.empty());
}

}  // namespace
}  // namespace atolldb
