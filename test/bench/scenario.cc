// SPDX-License-Identifier: Apache-2.0
#include "test/bench/scenario.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "pkg/api/runtime_v1.pb.h"
#include "test/bench/canned_backend.h"
#include "test/support/cri_client/specs.h"
#include "test/support/fake_runtime/generic_server.h"

namespace resmgr::bench {

namespace {

namespace cri = ::runtime::v1;

constexpr size_t kCreateBytes = 4096;
constexpr char kNameMark[] = "c00000000";
constexpr int kConcurrencies[] = {1, 8, 32};

// Request limits per case: added latency and CPU, against the byte relay's.
constexpr double kPassAdded = 1.3;
constexpr double kPassCpu = 1.45;
constexpr double kCreateAdded = 1.8;
constexpr double kCreateCpu = 1.8;
constexpr double kListCpu = 1.4;

std::string CreateTemplate() {
  cri::CreateContainerRequest request;
  request.set_pod_sandbox_id("bench-pod");
  *request.mutable_config() = test::MakeBestEffortContainer(kNameMark);
  // The image's name as a kubelet writes it.
  request.mutable_config()->mutable_image()->set_image(kImageId);
  *request.mutable_sandbox_config() = test::MakeBestEffortPod("bench");
  for (int i = 0; request.ByteSizeLong() < kCreateBytes; ++i) {
    auto* env = request.mutable_config()->add_envs();
    env->set_key(fmt::format("SERVICE_{:02}_PORT", i));
    env->set_value("tcp://10.0.0.1:443/with/some/path");
  }
  return request.SerializeAsString();
}

LoadResult RunAll(LoadClient& client, const std::string& method,
                  const std::vector<std::string>& requests) {
  constexpr int kConcurrency = 8;
  return client.Run(
      {.path = RuntimePath(method),
       .calls = static_cast<int>(requests.size()),
       .concurrency = kConcurrency,
       .request = [&](int i) { return test::ToBuffer(requests[static_cast<size_t>(i)]); }});
}

Status ToStatus(const LoadResult& result) {
  if (result.errors == 0) return OkStatus();
  return Unavailable("{} calls failed: {}", result.errors, result.first_error);
}

}  // namespace

std::string RuntimePath(const std::string& method) {
  return "/runtime.v1.RuntimeService/" + method;
}

grpc::ByteBuffer CreateRequest(int number) {
  static const auto* const kTemplate = new std::string(CreateTemplate());
  std::string bytes = *kTemplate;
  const std::string name = fmt::format("c{:08}", number);
  for (size_t at = bytes.find(kNameMark); at != std::string::npos;
       at = bytes.find(kNameMark, at + 1)) {
    bytes.replace(at, name.size(), name);
  }
  return test::ToBuffer(bytes);
}

grpc::ByteBuffer ListRequest(int containers) {
  cri::ListContainersRequest request;
  request.mutable_filter()->set_id(ListFilterId(containers));
  return test::ToBuffer(request.SerializeAsString());
}

Status RunPod(LoadClient& client) {
  cri::RunPodSandboxRequest request;
  *request.mutable_config() = test::MakeBestEffortPod("bench");
  return ToStatus(RunAll(client, "RunPodSandbox", {request.SerializeAsString()}));
}

StatusOr<std::vector<std::string>> RunContainers(LoadClient& client, int count) {
  // Far from the numbers of the measured containers.
  constexpr int kFirst = 90'000'000;
  const LoadResult created = client.Run({.path = RuntimePath("CreateContainer"),
                                         .calls = count,
                                         .concurrency = 8,
                                         .request = [](int i) { return CreateRequest(kFirst + i); },
                                         .keep_replies = true});
  RESMGR_RETURN_IF_ERROR(ToStatus(created));
  std::vector<std::string> ids;
  std::vector<std::string> starts;
  for (const std::string& reply : created.replies) {
    cri::CreateContainerResponse container;
    cri::StartContainerRequest start;
    if (!container.ParseFromString(reply)) return Internal("not a reply to CreateContainer");
    ids.push_back(container.container_id());
    start.set_container_id(container.container_id());
    starts.push_back(start.SerializeAsString());
  }
  RESMGR_RETURN_IF_ERROR(ToStatus(RunAll(client, "StartContainer", starts)));
  return ids;
}

Status RemoveContainers(LoadClient& client, const std::vector<std::string>& replies) {
  std::vector<std::string> requests;
  for (const std::string& reply : replies) {
    cri::CreateContainerResponse created;
    cri::RemoveContainerRequest request;
    if (!created.ParseFromString(reply)) return Internal("not a reply to CreateContainer");
    request.set_container_id(created.container_id());
    requests.push_back(request.SerializeAsString());
  }
  return ToStatus(RunAll(client, "RemoveContainer", requests));
}

std::vector<Scenario> AllScenarios(double factor) {
  std::vector<Scenario> scenarios;
  const auto add = [&](Scenario scenario, int calls) {
    for (const int concurrency : kConcurrencies) {
      scenario.concurrency = concurrency;
      const int scaled = static_cast<int>(std::lround(calls * factor));
      scenario.calls = std::max(scaled * (concurrency > 1 ? 2 : 1), 2 * concurrency);
      // The promised limits apply to the lower two; 32 is only shown.
      Scenario copy = scenario;
      if (concurrency > 8) copy.added_limit = copy.cpu_limit = std::nullopt;
      scenarios.push_back(std::move(copy));
    }
  };
  const auto empty = [](int) { return test::ToBuffer(""); };
  add({.name = "Version",
       .method = "Version",
       .request = empty,
       .added_limit = kPassAdded,
       .cpu_limit = kPassCpu},
      400);
  add({.name = "CreateContainer 4 KB",
       .method = "CreateContainer",
       .request = CreateRequest,
       .creates = true,
       .added_limit = kCreateAdded,
       .cpu_limit = kCreateCpu},
      300);
  add({.name = "ListContainers 200",
       .method = "ListContainers",
       .request = [](int) { return ListRequest(200); }},
      100);
  add({.name = "ListContainers 1000",
       .method = "ListContainers",
       .request = [](int) { return ListRequest(1000); },
       .cpu_limit = kListCpu},
      40);
  return scenarios;
}

}  // namespace resmgr::bench
