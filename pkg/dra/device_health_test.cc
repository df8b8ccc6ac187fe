// SPDX-License-Identifier: Apache-2.0
#include "pkg/dra/device_health.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/api/dra_health.pb.h"

namespace resmgr::dra {
namespace {

namespace health_test_api = k8s::io::kubelet::pkg::apis::dra_health::v1;

class DeviceHealthTest : public testing::Test {
 protected:
  struct Watcher {
    std::vector<health_test_api::NodeWatchResourcesResponse> got;
    Status end;
    bool here = true;
  };
  std::shared_ptr<Watcher> Watch() {
    auto watcher = std::make_shared<Watcher>();
    streams_.at("/v1.DRAResourceHealth/NodeWatchResources")(
        "", [watcher](const StatusOr<std::string>& answer) {
          if (!answer.ok()) {
            watcher->end = answer.status();
          } else if (watcher->here) {
            EXPECT_TRUE(watcher->got.emplace_back().ParseFromString(*answer));
          }
          return watcher->here && answer.ok();
        });
    return watcher;
  }

  DeviceHealth health_;
  const UnaryServer::Streams streams_ = health_.Streams();
};

TEST_F(DeviceHealthTest, IsServedInAllVersions) {
  for (const char* const version : {"v1", "v1beta1", "v1alpha1"}) {
    EXPECT_TRUE(
        streams_.contains(std::string("/") + version + ".DRAResourceHealth/NodeWatchResources"));
  }
}

TEST_F(DeviceHealthTest, EachAnswerHasAllDevices) {
  health_.Show("worker-1", {{.device = "cpu-numa-0"}, {.device = "cpu-numa-1"}});
  const auto watcher = Watch();
  ASSERT_EQ(watcher->got.size(), 1U) << "the state of now is told at once";
  health_.Show("worker-1",
               {{.device = "cpu-numa-0"}, {.device = "cpu-numa-1", .trouble = "CPUs 4-7 are off"}});
  ASSERT_EQ(watcher->got.size(), 2U);
  const health_test_api::NodeWatchResourcesResponse& last = watcher->got.back();
  ASSERT_EQ(last.devices_size(), 2);
  EXPECT_EQ(last.devices(0).health(), health_test_api::HEALTHY);
  EXPECT_EQ(last.devices(1).device().pool_name(), "worker-1");
  EXPECT_EQ(last.devices(1).device().device_name(), "cpu-numa-1");
  EXPECT_EQ(last.devices(1).health(), health_test_api::UNHEALTHY);
  EXPECT_EQ(last.devices(1).message(), "CPUs 4-7 are off");
  EXPECT_GT(last.devices(1).last_updated_time(), 0);
}

TEST_F(DeviceHealthTest, TheSameIsToldAgainOnlyByARepetition) {
  health_.Show("worker-1", {{.device = "cpu-numa-0"}});
  const auto watcher = Watch();
  health_.Show("worker-1", {{.device = "cpu-numa-0"}});
  EXPECT_EQ(watcher->got.size(), 1U);
  health_.Repeat();
  EXPECT_EQ(watcher->got.size(), 2U);
}

TEST_F(DeviceHealthTest, NothingIsToldBeforeThePoolIsKnown) {
  health_.Show("", {{.device = "cpu-numa-0"}});
  const auto watcher = Watch();
  health_.Repeat();
  EXPECT_TRUE(watcher->got.empty());
  health_.Show("worker-1", {{.device = "cpu-numa-0"}});
  EXPECT_EQ(watcher->got.size(), 1U);
}

TEST_F(DeviceHealthTest, WatchersAreBoundedAndThoseThatLeftAreForgotten) {
  health_.Show("worker-1", {{.device = "cpu-numa-0"}});
  std::vector<std::shared_ptr<Watcher>> watchers;
  for (size_t i = 0; i < DeviceHealth::kMostWatchers; ++i)
    watchers.push_back(Watch());
  EXPECT_EQ(Watch()->end.code(), StatusCode::kResourceExhausted);
  watchers.front()->here = false;
  EXPECT_TRUE(Watch()->end.ok());
  EXPECT_EQ(health_.watchers(), DeviceHealth::kMostWatchers);
}

// A kubelet that starts anew again and again, while the agent is away.
TEST_F(DeviceHealthTest, BeforeThePoolIsKnownTheNewestWatchersAreKept) {
  for (size_t i = 0; i < DeviceHealth::kMostWatchers; ++i)
    Watch()->here = false;
  const auto watcher = Watch();
  EXPECT_TRUE(watcher->end.ok()) << watcher->end;
  EXPECT_EQ(health_.watchers(), DeviceHealth::kMostWatchers);
  health_.Show("worker-1", {{.device = "cpu-numa-0"}});
  EXPECT_EQ(watcher->got.size(), 1U);
  EXPECT_EQ(health_.watchers(), 1U);
}

}  // namespace
}  // namespace resmgr::dra
