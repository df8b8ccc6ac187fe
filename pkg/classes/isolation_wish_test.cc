// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/isolation_wish.h"

#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using testing::HasSubstr;
using Interrupts = IsolationConfig::Interrupts;
using Quota = IsolationConfig::Quota;

class IsolationWishTest : public testing::Test {
 protected:
  static Pod MakePod(std::initializer_list<StringMap::value_type> annotations) {
    Pod pod;
    pod.namespace_name = "telco";
    pod.annotations = StringMap(annotations);
    return pod;
  }
  StatusOr<IsolationWish> Wish(std::initializer_list<StringMap::value_type> annotations,
                               std::string_view container = "main") const {
    return IsolationOf(MakePod(annotations), container, config_);
  }
  std::string ErrorOf(std::initializer_list<StringMap::value_type> annotations) const {
    return std::string(Message(Wish(annotations).status()));
  }

  ClassesConfig config_{.isolation = {.interrupts = Interrupts::kIsolate},
                        .namespaces = {{"isolation", {"tel*"}}}};
};

TEST_F(IsolationWishTest, TheConfigurationIsForAll) {
  const IsolationWish wish = Wish({}).value();
  EXPECT_EQ(wish.isolation, config_.isolation);
  EXPECT_EQ(wish.source, "classes.isolation");
  EXPECT_EQ(Wish({{"other", "1"}}).value(), wish);
}

TEST_F(IsolationWishTest, AnAnnotationChangesWhatItNames) {
  const IsolationWish wish =
      Wish({{"isolation.resource-policy.nri.io/pod", "{Quota: lift, MaxLatency: 10us}"}}).value();
  const IsolationConfig expected{
      .interrupts = Interrupts::kIsolate, .quota = Quota::kLift, .max_latency = "10"};
  EXPECT_EQ(wish.isolation, expected);
  EXPECT_EQ(wish.source, "annotation isolation.resource-policy.nri.io/pod");
  EXPECT_EQ(
      Wish({{"isolation.resource-policy.nri.io/container.main", "{Interrupts: leave}"}})->isolation,
      IsolationConfig());
  EXPECT_EQ(Wish({{"isolation.resource-policy.nri.io/container.other", "{Interrupts: leave}"}})
                ->isolation,
            config_.isolation);
}

TEST_F(IsolationWishTest, CrioAnnotationsHaveTheirExactValues) {
  const auto latency = [this](std::string_view value) {
    return Wish({{"cpu-c-states.crio.io", value}})->isolation.max_latency;
  };
  EXPECT_EQ(latency("disable"), "n/a");
  EXPECT_EQ(latency("enable"), "0");
  EXPECT_EQ(latency("max_latency:10"), "10");
  config_.isolation = {};
  EXPECT_EQ(Wish({{"irq-load-balancing.crio.io", "disable"}})->isolation.interrupts,
            Interrupts::kIsolate);
  EXPECT_EQ(Wish({{"cpu-quota.crio.io", "disable"}})->isolation.quota, Quota::kLift);
  EXPECT_EQ(Wish({{"cpu-load-balancing.crio.io", "disable"}})->isolation.partition,
            IsolationConfig::Partition::kIsolated);
  EXPECT_EQ(Wish({{"cpu-freq-governor.crio.io", "performance"}})->isolation.governor,
            "performance");
  EXPECT_EQ(Wish({{"cpu-freq-governor.crio.io", "performance"},
                  {"cpu-freq-governor.crio.io/main", "powersave"}})
                ->isolation.governor,
            "powersave");
}

TEST_F(IsolationWishTest, AnUnknownValueIsRefused) {
  for (const char* const wrong : {"max_latency:0", "max_latency:-1", "foo", "", "max_latency:"}) {
    EXPECT_EQ(ErrorOf({{"cpu-c-states.crio.io", wrong}}),
              fmt::format("annotation cpu-c-states.crio.io: \"{}\" is not disable, enable or "
                          "max_latency:MICROSECONDS",
                          wrong));
  }
  EXPECT_THAT(ErrorOf({{"irq-load-balancing.crio.io", "balance"}}),
              HasSubstr("annotation irq-load-balancing.crio.io: \"balance\" is not disable or"));
  EXPECT_EQ(Wish({{"irq-load-balancing.crio.io", "housekeeping"}})->isolation.interrupts,
            IsolationConfig::Interrupts::kHousekeeping);
  EXPECT_THAT(ErrorOf({{"cpu-freq-governor.crio.io/main", "../x"}}),
              HasSubstr("annotation cpu-freq-governor.crio.io/main"));
  EXPECT_THAT(ErrorOf({{"isolation.resource-policy.nri.io", "{Interrupt: isolate}"}}),
              HasSubstr("isolation.Interrupt: unknown key"));
  EXPECT_THAT(ErrorOf({{"isolation.resource-policy.nri.io", "{Interrupts: off}"}}),
              HasSubstr("isolation.Interrupts"));
}

TEST_F(IsolationWishTest, OfOtherNamespacesAnnotationsDoNotCount) {
  config_.namespaces["isolation"] = {"kube-*"};
  const IsolationWish wish =
      Wish({{"cpu-quota.crio.io", "foo"}, {"irq-load-balancing.crio.io", "disable"}}).value();
  EXPECT_EQ(wish.isolation, config_.isolation);
  EXPECT_EQ(wish.source, "classes.isolation");
  EXPECT_EQ(wish.note,
            "annotation irq-load-balancing.crio.io, cpu-quota.crio.io ignored: namespace telco is "
            "not in classes.AllowedNamespaces.isolation");
}

}  // namespace
}  // namespace resmgr
