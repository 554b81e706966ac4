// `atoll keys generate|show`: keys of network sessions.
#include <zmq.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <memory>
#include <string>

#include "ops/cli/command.h"
#include "shared/base/hex.h"
#include "shared/base/try.h"
#include "shared/message/control_message.h"
#include "shared/network/curve_key.h"

namespace atolldb::cli {
namespace {

struct KeysOptions {
  std::string file;
  bool json = false;
};

/// Keys as text in the encoding of ZeroMQ: 40 digits and a zero byte.
constexpr size_t kZ85Bytes = 41;

void print_public_key(const KeysOptions& options, const CurveKey& key) {
  if (!options.json) {
    std::printf("%s\n", to_hex(key).c_str());
    return;
  }
  const Json whole = {{"schema_version", 1}, {"file", options.file}, {"public_key", to_hex(key)}};
  std::printf("%s\n", whole.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

Result<void> generate_keys(const KeysOptions& options) {
  std::array<char, kZ85Bytes> public_text{};
  std::array<char, kZ85Bytes> secret_text{};
  CurveKeyPair keys;
  const bool is_made = zmq_curve_keypair(public_text.data(), secret_text.data()) == 0 &&
                       zmq_z85_decode(reinterpret_cast<uint8_t*>(keys.public_key.data()),
                                      public_text.data()) != nullptr &&
                       zmq_z85_decode(reinterpret_cast<uint8_t*>(keys.secret_key.data()),
                                      secret_text.data()) != nullptr;
  if (!is_made) {
    return make_error(ExitCode::failed,
                      "keys: this build of ZeroMQ has no CURVE: install one with "
                      "libsodium");
  }
  ATOLL_TRY(write_key_file(options.file, keys));
  print_public_key(options, keys.public_key);
  return {};
}

Result<void> show_key(const KeysOptions& options) {
  ATOLL_ASSIGN(const CurveKeyPair keys, read_key_file(options.file));
  print_public_key(options, keys.public_key);
  return {};
}

}  // namespace

void add_keys_command(CLI::App& app, Invocation& invocation) {
  CLI::App* group = app.add_subcommand("keys", "Make keys for sessions over the network");
  group->require_subcommand(1);
  const auto options = std::make_shared<KeysOptions>();
  CLI::App* making = group->add_subcommand(
      "generate", "Make a file with the keys of a node or a client, and print the public key");
  making->add_option("FILE", options->file, "File to make, of mode 600")->required();
  add_json_option(*making, options->json);
  making->callback(
      [&invocation, options] { invocation.run = [options] { return generate_keys(*options); }; });
  CLI::App* showing = group->add_subcommand("show", "Print the public key of a file");
  showing->add_option("FILE", options->file, "File of `atoll keys generate`")->required();
  add_json_option(*showing, options->json);
  showing->callback(
      [&invocation, options] { invocation.run = [options] { return show_key(*options); }; });
}

}  // namespace atolldb::cli
