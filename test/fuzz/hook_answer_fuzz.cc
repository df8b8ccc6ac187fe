// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include <google/protobuf/stubs/logging.h>

#include "pkg/hooks/hook_merge.h"

namespace {

namespace hooks = resmgr::hooks;
namespace hook_api = ::runtime::v1alpha1;
using hooks::AnswerStyle;
using hooks::HookPoint;
using hooks::PlacementOwner;

void Require(bool good, int line = __builtin_LINE()) {
  if (good) return;
  std::fprintf(stderr, "line %d\n", line);
  std::abort();
}

// An answer is taken as a whole or not at all, and the same answer makes no change the second time.
void Merge(HookPoint point, AnswerStyle style,
           const hook_api::ContainerResourceHookRequest& request,
           const hook_api::ContainerResourceHookResponse& answer) {
  hooks::ContainerHookMerge merge(point, request);
  if (!merge.Add("first.json", style, answer).ok()) {
    Require(merge.changes().empty());
    return;
  }
  hooks::ContainerHookMerge again(point, merge.request());
  Require(again.Add("second.json", style, answer).ok() && again.changes().empty());
  for (const auto& change : merge.changes().Changes())
    Require(merge.owners().Of(change) == "first.json");
  Require(merge.owners().conflicts().empty());
}

// A second server that repeats its request does not change the first one's values.
void MergeWithEcho(AnswerStyle style, const hook_api::ContainerResourceHookRequest& request,
                   const hook_api::ContainerResourceHookResponse& answer) {
  hooks::ContainerHookMerge merge(HookPoint::kPreCreateContainer, request);
  if (!merge.Add("first.json", style, answer).ok()) return;
  const std::string told = merge.request().SerializeAsString();
  const auto changes = merge.changes().Changes();
  hook_api::ContainerResourceHookResponse echo;
  *echo.mutable_container_annotations() = merge.request().container_annotations();
  if (merge.request().has_container_resources()) {
    *echo.mutable_container_resources() = merge.request().container_resources();
  }
  echo.set_pod_cgroup_parent(merge.request().pod_cgroup_parent());
  *echo.mutable_container_envs() = merge.request().container_envs();
  // Lists of the client that no runtime would take are the client's.
  if (!merge.Add("second.json", AnswerStyle::kEcho, echo).ok()) return;
  Require(merge.changes().Changes().size() == changes.size());
  Require(merge.request().ByteSizeLong() == told.size() && merge.owners().conflicts().empty());
  for (const auto& change : changes)
    Require(merge.owners().Of(change) == "first.json");
}

// If the policy owns the CPUs, the next server does not see a server's CPUs.
void MergeUnderPolicy(AnswerStyle style, const hook_api::ContainerResourceHookRequest& request,
                      const hook_api::ContainerResourceHookResponse& answer) {
  hooks::ContainerHookMerge merge(HookPoint::kPreUpdateContainerResources, request,
                                  PlacementOwner::kPolicy);
  (void)merge.Add("first.json", style, answer);
  const auto& had = request.container_resources();
  const auto& has = merge.request().container_resources();
  Require(has.cpuset_cpus() == had.cpuset_cpus() && has.cpuset_mems() == had.cpuset_mems());
  Require(merge.changes().wide() == nullptr ||
          (merge.changes().wide()->environment.empty() && !merge.changes().wide()->cgroup_parent));
}

void MergePod(std::string_view request_bytes, std::string_view answer_bytes) {
  hook_api::PodSandboxHookRequest request;
  hook_api::PodSandboxHookResponse answer;
  if (!request.ParseFromString(std::string(request_bytes)) ||
      !answer.ParseFromString(std::string(answer_bytes))) {
    return;
  }
  hooks::PodHookMerge merge(request);
  Require(merge.Add("first.json", answer).ok());
  hooks::PodHookMerge again(merge.request());
  Require(again.Add("second.json", answer).ok());
  Require(again.changes().empty());
  for (const auto& [key, value] : answer.labels())
    Require(merge.request().labels().at(key) == value);
  for (const auto& [key, value] : request.annotations())
    Require(merge.request().annotations().contains(key));
}

}  // namespace

// The first byte is the length of the request, in steps of 8 bytes; the answer follows it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const google::protobuf::LogSilencer kQuiet;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t split = std::min<size_t>(size_t{data[0]} * 8, bytes.size());
  MergePod(bytes.substr(0, split), bytes.substr(split));
  hook_api::ContainerResourceHookRequest request;
  hook_api::ContainerResourceHookResponse answer;
  if (!request.ParseFromString(std::string(bytes.substr(0, split))) ||
      !answer.ParseFromString(std::string(bytes.substr(split)))) {
    return 0;
  }
  for (const AnswerStyle style : {AnswerStyle::kEcho, AnswerStyle::kSparse}) {
    Merge(HookPoint::kPreCreateContainer, style, request, answer);
    Merge(HookPoint::kPreUpdateContainerResources, style, request, answer);
    MergeWithEcho(style, request, answer);
    MergeUnderPolicy(style, request, answer);
  }
  return 0;
}
