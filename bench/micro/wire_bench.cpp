// Measures the encoding of network sessions: frames of requests and of answers are written and
// read. One iteration is a frame of `range(0)` requests with an input of 100 bytes, or of answers
// with an output of 100 bytes. Items are requests or answers.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <vector>

#include "shared/base/check.h"
#include "shared/network/wire.h"

namespace atolldb::bench {
namespace {

void wire_requests(benchmark::State& state) {
  const std::vector<std::byte> input(100);
  WireWriter writer;
  WireFrame frame;
  for ([[maybe_unused]] auto _ : state) {
    for (int64_t i = 0; i < state.range(0); ++i) {
      WireRequest request;
      request.id = static_cast<uint64_t>(i) + 1;
      request.procedure = "kv.txn";
      request.input = input;
      writer.add(request);
    }
    CHECK(read_wire_frame(writer.finish_requests(), frame));
    benchmark::DoNotOptimize(frame.requests.data());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void wire_answers(benchmark::State& state) {
  const std::vector<std::byte> output(100);
  WireWriter writer;
  WireFrame frame;
  for ([[maybe_unused]] auto _ : state) {
    for (int64_t i = 0; i < state.range(0); ++i) {
      WireAnswer answer;
      answer.id = static_cast<uint64_t>(i) + 1;
      answer.output = output;
      writer.add(answer);
    }
    CHECK(read_wire_frame(writer.finish_answers(1), frame));
    benchmark::DoNotOptimize(frame.answers.data());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

BENCHMARK(wire_requests)->Arg(1)->Arg(64);
BENCHMARK(wire_answers)->Arg(1)->Arg(64);

}  // namespace
}  // namespace atolldb::bench
