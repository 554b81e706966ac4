// The registry numbers its procedures, for their statistics.
#include "soc/procedure/registry.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace atolldb {
namespace {

Status nothing(ProcedureContext&) { return Status::ok; }
Result<std::string> no_job(JobContext&) { return std::string(); }

TEST(ProcedureRegistryTest, ProceduresHaveOrdinalsInTheirOrderAndJobsHaveNone) {
  ProcedureRegistry registry;
  const ProcedureEntry first[] = {
      {"z", nothing}, {"job", nullptr, no_job}, {"a", nothing, nullptr, Isolation::snapshot}};
  ASSERT_TRUE(registry.add_library({kProcedureApiVersion, 3, first}, "first"));
  const ProcedureEntry second[] = {{"m", nothing}};
  ASSERT_TRUE(registry.add_library({kProcedureApiVersion, 1, second}, "second"));
  EXPECT_EQ(registry.procedure_names(), (std::vector<std::string>{"z", "a", "m"}));
  for (uint32_t ordinal = 0; ordinal < 3; ++ordinal) {
    const auto procedure = registry.procedure(registry.procedure_names()[ordinal]);
    ASSERT_TRUE(procedure);
    EXPECT_EQ(procedure->ordinal, ordinal);
    EXPECT_EQ(procedure->code.function, nothing);
  }
  EXPECT_EQ(registry.procedure("a")->isolation, Isolation::snapshot);
  EXPECT_EQ(registry.procedure("z")->isolation, Isolation::serializable);
  EXPECT_FALSE(registry.procedure("job"));
  EXPECT_FALSE(registry.procedure("unknown"));
}

TEST(ProcedureRegistryTest, ARefusedNameTakesNoOrdinal) {
  ProcedureRegistry registry;
  const ProcedureEntry twice[] = {{"a", nothing}, {"a", nothing}};
  EXPECT_FALSE(registry.add_library({kProcedureApiVersion, 2, twice}, "twice"));
  EXPECT_EQ(registry.procedure_names().size(), 1u);
}

}  // namespace
}  // namespace atolldb
