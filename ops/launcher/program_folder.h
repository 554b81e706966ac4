// Where the programs are that `atoll` starts: atoll-coordinator, atoll-node, atoll-to-parquet.
#pragma once

#include <string>

namespace atolldb {

/// Returns the absolute path of their folder. It is the folder of the running program, as in a
/// build, or else the folder `libexec/atoll` of the prefix that this program is installed under.
std::string program_folder();

}  // namespace atolldb
