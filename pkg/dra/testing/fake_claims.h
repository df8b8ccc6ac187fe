// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pkg/claims/claim.h"
#include "pkg/dra/claim_object.h"

namespace resmgr::dra::test {

// Gives each part of a claim the lowest free CPUs of so many.
class FakeHolder final : public ClaimHolder {
 public:
  explicit FakeHolder(int cpus) : free_(CpuSet::Range(0, cpus - 1)) {}

  void Reserve(const Claim& claim, std::function<void(StatusOr<ClaimGrant>)> done) override {
    ++reserves;
    if (waits) return waiting.push_back([this, claim, done] { done(Grant(claim)); });
    done(Grant(claim));
  }
  void Release(const std::string& uid, std::function<void(Status)> done) override {
    if (const auto found = held_.find(uid); found != held_.end()) {
      free_ |= found->second.All();
      held_.erase(found);
    }
    done(OkStatus());
  }
  std::vector<ClaimGrant> Held() const override {
    std::vector<ClaimGrant> held;
    for (const auto& [uid, grant] : held_)
      held.push_back(grant);
    return held;
  }

  int reserves = 0;
  bool waits = false;  // Reserve ends with its entry in `waiting`
  std::vector<std::function<void()>> waiting;

 private:
  StatusOr<ClaimGrant> Grant(const Claim& claim) {
    if (const auto found = held_.find(claim.uid); found != held_.end()) return found->second;
    ClaimGrant grant{.uid = claim.uid};
    CpuSet left = free_;
    for (const ClaimPart& part : claim.parts) {
      if (left.size() < part.cpus)
        return ResourceExhausted("{} CPUs are needed, {} are free", part.cpus, left.size());
      CpuSet& cpus = grant.cpus.emplace_back();
      while (cpus.size() < part.cpus) {
        const int cpu = *left.begin();
        cpus.Add(cpu);
        left.Remove(cpu);
      }
    }
    free_ = left;
    return held_[claim.uid] = grant;
  }

  CpuSet free_;
  std::map<std::string, ClaimGrant> held_;
};

// A ResourceClaim for so many CPUs of NUMA node 1 of the driver dra.cpu.
inline std::string ClaimObject(const ClaimName& claim, int cpus) {
  return fmt::format(
      R"({{"metadata":{{"namespace":"{}","name":"{}","uid":"{}"}},"status":{{"allocation":{{"devices":{{"results":[)"
      R"({{"request":"cpus","driver":"dra.cpu","pool":"w","device":"cpudevnuma001","shareID":"s","consumedCapacity":{{"cpu":"{}"}}}})"
      R"(]}}}}}}}})",
      claim.namespace_name, claim.name, claim.uid, cpus);
}

}  // namespace resmgr::dra::test
