// Starts the program that converts an export to Parquet.
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "ops/cli/export_data.h"
#include "ops/launcher/program_folder.h"
#include "shared/base/unique_fd.h"

namespace atolldb::cli {
namespace {

/// Name of ops/export/to_parquet.py in the folder of the programs, where the build puts it.
constexpr const char* kConverterName = "atoll-to-parquet";
/// Path of a Python with pyarrow, relative to the folder of the programs. `ops/setup --parquet`
/// installs it.
constexpr const char* kToolPython = "../../tools/parquet/bin/python3";

}  // namespace

Result<void> convert_to_parquet(const std::string& directory, const std::string& python) {
  const std::filesystem::path folder = program_folder();
  std::string interpreter = python;
  if (interpreter.empty()) {
    const std::filesystem::path tool = folder / kToolPython;
    std::error_code ignored;
    interpreter = std::filesystem::exists(tool, ignored) ? tool.string() : "python3";
  }
  std::string script = (folder / kConverterName).string();
  std::string target = directory;
  char* arguments[] = {interpreter.data(), script.data(), target.data(), nullptr};
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, arguments[0], nullptr, nullptr, arguments, environ);
  if (error != 0) {
    return make_error(ExitCode::resources,
                      fmt::format("{}: cannot be started: {}: install python3, or choose another "
                                  "one with --python; the CSV files are complete",
                                  interpreter, std::strerror(error)));
  }
  int status = 0;
  uninterrupted([&] { return waitpid(pid, &status, 0); });
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  const bool lacks_package =
      WIFEXITED(status) && WEXITSTATUS(status) == static_cast<int>(ExitCode::resources);
  if (lacks_package) return make_error(ExitCode::resources, "");  // the program has said why
  return make_error(ExitCode::failed,
                    fmt::format("{}: the conversion to Parquet failed: `atoll export --resume "
                                "--format parquet` tries again; the CSV files are complete",
                                directory));
}

}  // namespace atolldb::cli
