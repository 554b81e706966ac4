// A real Prometheus server, with the shipped config and alerts.
#pragma once

#include <signal.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "tests/cluster/cli_run.h"
#include "tests/cluster/metrics_http.h"

namespace atolldb::test {

/// Runs Prometheus with a copy of ops/prometheus.yml that scrapes more often.
class PrometheusServer {
 public:
  /// `targets`: the files with the targets of the clusters.
  PrometheusServer(const CliRunner& runner, const std::vector<std::string>& targets)
      : port_(free_port()) {
    const std::string folder = runner.folder() + "/prometheus";
    std::filesystem::create_directories(folder + "/targets");
    for (size_t i = 0; i < targets.size(); ++i) {
      std::filesystem::create_symlink(targets[i],
                                      folder + "/targets/cluster" + std::to_string(i) + ".json");
    }
    std::string config = read_text(std::string(ATOLL_SOURCE_DIR) + "/ops/prometheus.yml");
    for (size_t at = 0; (at = config.find("interval: 5s", at)) != std::string::npos; ++at) {
      config.replace(at, 12, "interval: 1s");
    }
    std::ofstream(folder + "/prometheus.yml") << config;
    std::filesystem::copy_file(std::string(ATOLL_SOURCE_DIR) + "/ops/alerts.yml",
                               folder + "/alerts.yml");
    log_ = folder + "/log";
    pid_ = runner.start(
        find_program("prometheus"),
        {"--config.file=" + folder + "/prometheus.yml", "--storage.tsdb.path=" + folder + "/data",
         "--web.listen-address=127.0.0.1:" + std::to_string(port_)},
        folder + "/out", log_);
  }
  ~PrometheusServer() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  PrometheusServer(const PrometheusServer&) = delete;
  PrometheusServer& operator=(const PrometheusServer&) = delete;

  /// Returns the answer to an instant query, or null if it is no success.
  nlohmann::json evaluate(const std::string& expression) const {
    auto json = nlohmann::json::parse(
        http_get(port_, "/api/v1/query?query=" + url_encode(expression)), nullptr, false);
    return json.is_object() && json["status"] == "success" ? json["data"]["result"] : nullptr;
  }
  /// Returns the values of an instant query, by the label `process`.
  std::map<std::string, double> query(const std::string& expression) const {
    std::map<std::string, double> values;
    for (const auto& sample : evaluate(expression)) {
      values[sample["metric"].value("process", "")] =
          std::stod(sample["value"][1].get<std::string>());
    }
    return values;
  }
  std::string log() const { return read_text(log_); }

 private:
  uint16_t port_;
  pid_t pid_ = 0;
  std::string log_;
};

}  // namespace atolldb::test
