// SPDX-License-Identifier: Apache-2.0
// The daemon knows a pod's exact requests by way of the webhook, for every milli-CPU.
#include <string>
#include <vector>

#include <fmt/format.h>

#include "pkg/model/requirements.h"
#include "pkg/model/resources_annotation.h"
#include "test/integration/control_fixture.h"
#include "test/support/programs/programs.h"
#include "webhook/review.h"
#include "webhook/testing/reviews.h"

namespace resmgr::test {
namespace {

using testing::Gt;
using testing::Lt;

constexpr int kLastRequest = 64'000;
// Each container reads its whole pod's annotation, so more containers in a pod only slow the test
// down.
constexpr int kPerPod = 10;
int Step() {
  return kPerPod * (SanitizedPrograms() ? 13 : 1);
}

// A Burstable pod whose container "mN" asks for N milli-CPU.
Json PodAskingFor(const std::vector<int>& requests) {
  Json containers = Json::array();
  for (const int request : requests) {
    containers.push_back({{"name", fmt::format("m{}", request)},
                          {"image", "i"},
                          {"resources", {{"requests", {{"cpu", fmt::format("{}m", request)}}}}}});
  }
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", {{"name", "p"}, {"namespace", "default"}}},
          {"spec", {{"containers", containers}}}};
}

// The annotation that the webhook's patch puts into the pod.
std::string AnnotationFor(const Json& pod) {
  const webhook::HttpReply reply =
      webhook::ReviewAdmission(webhook::ReviewOf(pod, "CREATE").dump());
  const Json patch = webhook::PatchIn(Json::parse(reply.body));
  const Json patched = pod.patch(patch);
  return patched["metadata"]["annotations"].value(std::string(kResourcesAnnotation), "");
}

LinuxResources SharesOf(int request) {
  const cri::ContainerConfig config = MakeBurstableContainer("main", {request});
  LinuxResources resources;
  resources.cpu_shares = config.linux().resources().cpu_shares();
  return resources;
}

TEST(RequestViewTest, EveryMilliCpuArrives) {
  int beyond_estimate = 0;
  for (int first = 1; first <= kLastRequest; first += Step()) {
    std::vector<int> requests;
    for (int request = first; request < first + kPerPod && request <= kLastRequest; ++request)
      requests.push_back(request);
    Pod pod;
    pod.qos = QosClass::kBurstable;
    pod.annotations.Set(std::string(kResourcesAnnotation), AnnotationFor(PodAskingFor(requests)));
    for (const int request : requests) {
      const LinuxResources shares = SharesOf(request);
      const ResolvedRequirements resolved =
          ResolveRequirements(shares, pod, {}, fmt::format("m{}", request));
      ASSERT_EQ(resolved.requirements.cpu_request.value, request) << Describe(resolved.annotation);
      const Requirements estimate = EstimateRequirements(shares, QosClass::kBurstable, {});
      if (estimate.cpu_request.value != request) ++beyond_estimate;
    }
  }
  EXPECT_THAT(beyond_estimate, Gt(0)) << "the estimate alone would do";
  EXPECT_THAT(beyond_estimate, Lt(kLastRequest)) << "the estimate is never right";
  RecordProperty("beyond_estimate", beyond_estimate);
}

class RequestInDaemonTest : public ControlTest {};

TEST_F(RequestInDaemonTest, TheDaemonShowsWhatThePodAsksFor) {
  StartBoth();
  if (HasFatalFailure()) return;
  // Requests for which shares are the minimum, equal, or rounded.
  const std::vector<int> requests = {1,   2,    3,    7,    128,   255,   256,   257,
                                     999, 1000, 1001, 2047, 16383, 31999, 63999, 64'000};
  cri::PodSandboxConfig pod = MakeBurstablePod("p");
  (*pod.mutable_annotations())[std::string(kResourcesAnnotation)] =
      AnnotationFor(PodAskingFor(requests));
  CriClient client = Relayed();
  const std::string sandbox = Ok(client.RunPod(pod));
  for (const int request : requests) {
    const std::string id = Ok(client.CreateContainer(
        sandbox, pod, MakeBurstableContainer(fmt::format("m{}", request), {request})));
    ASSERT_THAT(client.StartContainer(id), IsOk());
  }
  const auto expect_all = [&](const char* when) {
    for (const int request : requests) {
      const Json shown =
          Ctl({"explain", fmt::format("default/p/m{}", request), "-o", "json"}).json();
      ASSERT_EQ(shown.size(), 1u) << when;
      EXPECT_EQ(shown[0].at("request"), request) << when;
    }
  };
  expect_all("created");
  daemon_->Kill();
  StartDaemon(StaticFlags());
  ASSERT_TRUE(Eventually([&] {
    return Ctl({"containers", "-o", "json"}).json().size() == requests.size();
  }));
  expect_all("after a restart");
}

}  // namespace
}  // namespace resmgr::test
