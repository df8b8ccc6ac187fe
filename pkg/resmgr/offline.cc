// SPDX-License-Identifier: Apache-2.0
// CPUs that go offline and come back while containers run.
#include <string_view>
#include <utility>

#include "pkg/allocator/want_of_room.h"
#include "pkg/base/count_text.h"
#include "pkg/resmgr/resource_manager_impl.h"
#include "pkg/topology/online_cpus.h"

namespace resmgr {
namespace {

// "CPU 9", "CPUs 8-9".
std::string Named(const CpuSet& cpus) {
  return fmt::format("{} {}", cpus.size() == 1 ? "CPU" : "CPUs", cpus.ToString());
}

std::string WhatHappened(const CpuSet& gone, const CpuSet& back) {
  std::string text;
  if (!gone.empty()) text = Named(gone) + " went offline";
  if (!back.empty()) text += (text.empty() ? "" : ", ") + Named(back) + " came back";
  return text;
}

}  // namespace

Status ResourceManager::Impl::SetOffline(const Offline& offline, std::unique_ptr<Policy> policy) {
  if (change_) return FailedPrecondition("a change of the policy is under way");
  const CpuSet before = offline_;
  const std::string why = WhatHappened(offline.cpus - before, before - offline.cpus);
  decider_.SetOffline(offline.cpus);
  StatusOr<ContainerKeys> changed = decider_.Switch(*policy, offline.reserved);
  if (!changed.ok()) {
    decider_.SetOffline(before);
    return Annotate(changed.status(), fmt::format("policy {}", policy->name()));
  }
  policy_ = std::move(policy);
  offline_ = offline.cpus;
  if (!why.empty()) log_.Info("{}; changed: {}", why, CountText(std::ssize(*changed), "container"));
  ReportMoves(why);
  if (!before.IsSubsetOf(offline.cpus)) Append(*changed, GiveBackCpus(why));
  Push(*std::move(changed));
  return OkStatus();
}

// What asks for more than it has may lack the CPUs that came back.
ContainerKeys ResourceManager::Impl::GiveBackCpus(const std::string& why) {
  ContainerKeys all;
  for (const auto& [key, record] : store_.containers()) {
    if (record.Placeable() && LacksCpus(record.container.placement.reason)) all.push_back(key);
  }
  ContainerKeys changed;
  for (const ContainerKey key : all) {
    StatusOr<ContainerKeys> more = decider_.Update(*store_.Find(key));
    if (more.ok()) {
      ReportMoves(why);
      Append(changed, std::move(more));
    } else if (more.status().code() == StatusCode::kInternal) {
      Append(changed, std::move(more));
    }
  }
  return changed;
}

std::string ResourceManager::Impl::OfflineNote() const {
  const CpuSet all = offline_ | OfflineCpus(machine_);
  if (all.empty()) return "";
  return fmt::format("; {} {} offline", Named(all), all.size() == 1 ? "is" : "are");
}

}  // namespace resmgr
