// SPDX-License-Identifier: Apache-2.0
// The search for balloons ends after so much work, whatever is asked of it. test/bench/policy has
// the times of whole starts (`policy-bench losses`).
#include "policies/balloons/balloon_explanation.h"

#include <chrono>
#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "pkg/config/yaml_reader.h"
#include "policies/balloons/balloons_options.h"
#include "test/support/machines/machines.h"
#include "test/support/sanitizer.h"

namespace resmgr {
namespace {

// Ten times what the worst of these searches takes on a slow machine.
constexpr std::chrono::milliseconds kLongestSearch{test::kSanitized ? 20'000 : 1000};
constexpr int kSearched = 60;  // balloons

std::chrono::nanoseconds SearchTime() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

// 512 CPUs under `types` types with these keys, and balloons of which each sees 8 CPUs.
class ExplanationSearchTest : public testing::Test {
 protected:
  void Search(int threads, int types, const std::string& keys, bool hides, bool offers_some) {
    const Machine machine = test::MakeMachine({.packages = 2,
                                               .nodes = 4,
                                               .cores = 64 / threads,
                                               .threads = threads,
                                               .siblings_apart = false});
    ASSERT_EQ(machine.online().size(), 512);
    std::string section = "balloonTypes:\n";
    for (int type = 0; type < types; ++type)
      section += fmt::format("- {{name: t{}, {}}}\n", type, keys);
    const StatusOr<ConfigNode> config = ParseYaml(section, "test.yaml");
    ASSERT_TRUE(config.ok()) << config.status();
    StatusOr<BalloonsOptions> options = ReadBalloonsOptions(&*config, nullptr);
    ASSERT_TRUE(options.ok()) << options.status();
    const PolicyContext context{
        .machine = machine, .available = machine.online(), .reserved = {511}, .section = &*config};
    StatusOr<BalloonSetup> setup = BalloonSetup::Create(context, *std::move(options));
    ASSERT_TRUE(setup.ok()) << setup.status();
    const BalloonBook book(std::make_shared<const BalloonSetup>(*std::move(setup)));
    std::vector<SeenBalloon> seen;
    for (int i = 0; i < kSearched; ++i) {
      SeenBalloon balloon;
      for (int cpu = 8 * i; cpu < 8 * i + 8; cpu += hides ? threads : 1)
        (hides ? balloon.threads : balloon.whole).Add(cpu);
      for (int type = 0; type < book.setup().types(); ++type)
        balloon.needed.push_back(book.setup().type(type).name.starts_with('t') ? 8 : 1);
      balloon.types[book.setup().options().FindType("t0")] = 1;
      seen.push_back(std::move(balloon));
    }
    int offers = 0;
    const auto begun = SearchTime();
    EXPECT_FALSE(ExplainCpus(book, seen, [&offers](const BalloonExplanation& found) {
      EXPECT_EQ(found.balloons.size(), size_t{kSearched});
      ++offers;
      return false;
    }));
    EXPECT_LT(SearchTime() - begun, kLongestSearch);
    EXPECT_LE(offers, 100);
    EXPECT_EQ(offers > 0, offers_some) << offers;
  }
};

// Sixty balloons and 59 types of one balloon each, in any order.
TEST_F(ExplanationSearchTest, EndsWhereTypesAreNeverEnough) {
  Search(2, kSearched - 1, "maxBalloons: 1", false, false);
}

TEST_F(ExplanationSearchTest, EndsWhereNoOfferIsTaken) {
  Search(2, 3, "preferNewBalloons: true", false, true);
}

// The owners of threads that no container sees are open.
TEST_F(ExplanationSearchTest, EndsWhereEachCoreHasManyChoices) {
  Search(4, 3, "followUse: {growAbove: 70}, hideHyperthreads: true", true, true);
}

TEST_F(ExplanationSearchTest, EndsWhereAllShareTheWholeMachine) {
  Search(4, 16, "shareIdleCPUsInSame: system, followUse: {growAbove: 70}", false, false);
}

}  // namespace
}  // namespace resmgr
