// The `atoll` command.
#include "ops/cli/command.h"

int main(int argc, char** argv) { return atolldb::cli::run_command_line(argc, argv); }
