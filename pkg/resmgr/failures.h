// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <string_view>

#include "pkg/resmgr/brain.h"
#include "pkg/resmgr/policy_changes.h"
#include "pkg/resmgr/refusal_log.h"
#include "pkg/sys/lifetime.h"

namespace resmgr {

// Updates of the brain's own that the runtime does not carry out, and causes of refused calls.
// Loop's thread only.
class Failures {
 public:
  // Both must outlive it.
  Failures(Brain& brain, PolicyChanges& policy_changes)
      : brain_(brain), policy_changes_(policy_changes) {}
  Failures(const Failures&) = delete;
  Failures& operator=(const Failures&) = delete;

  // UpdateListener::OnFailed.
  void OnFailed(ContainerKey key, const Status& status);
  // See ResourceManager::RefusedByRuntime; the record may be null.
  void RefusedByRuntime(const ContainerRecord* record, std::string_view answer);

 private:
  // Failed updates that wait for a list, which shows whether the container still exists.
  struct Waiting {
    Status last;
    size_t count = 0;
    // Set if lists show no news: the container's end may be reported a little later, which is
    // waited for once.
    EventLoop::HandlePtr again{};
    bool shown = false;
  };
  void Report(ContainerKey key);

  Brain& brain_;
  PolicyChanges& policy_changes_;
  std::map<ContainerKey, Waiting> waiting_;
  RefusalLog refusal_log_;
  Lifetime lifetime_;
};

}  // namespace resmgr
