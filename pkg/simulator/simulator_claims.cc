// SPDX-License-Identifier: Apache-2.0
// The driver's part in a simulation: claims that are prepared, carried and given back.
#include <algorithm>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/dra/claim_object.h"
#include "pkg/simulator/simulator.h"

namespace resmgr {
namespace {

// "cpu-numa-1: CPUs 8-11 (Guaranteed pod with 4 whole CPUs)", for each part.
std::string DescribeParts(const HeldClaim& held) {
  std::string text;
  for (size_t at = 0; at < held.parts.size(); ++at) {
    const Placement& placement = held.parts[at].placement;
    if (!text.empty()) text += "; ";
    text += fmt::format("{}: CPUs {}", held.claim.parts[at].device, placement.exclusive.ToString());
    if (held.claim.options.avoid_siblings && placement.cpus)
      text += fmt::format(", of which containers see {}", placement.cpus->ToString());
    if (!placement.reason.empty()) text += fmt::format(" ({})", placement.reason);
  }
  return text;
}

}  // namespace

void Simulator::Do(const ClaimDocument& claim) {
  const std::string name = claim.name.ToString();
  const auto known = claims_.find(name);
  if (known != claims_.end() && known->second.document.name.uid != claim.name.uid &&
      node_->FindClaim(known->second.document.name.uid) != nullptr) {
    return AddClaim("prepare", claim.name,
                    AlreadyExists("claim {} exists already, with another UID", name), "");
  }
  // A former form of the claim is replaced, since a driver reads the newest one. The effect that
  // Tell adds has any error.
  (void)Tell(claims_[name] = {.document = claim});
}

Status Simulator::Prepare(KnownClaim& claim) {
  const dra::Driver driver = {.name = config_.dra.DriverName(),
                              .compatible = config_.dra.compatible};
  const dra::ClaimName& name = claim.document.name;
  RESMGR_ASSIGN_OR_RETURN(const dra::AllocatedClaim allocated,
                          dra::ParseClaimObject(claim.document.object, name, driver));
  claim.ours = !allocated.devices.empty();
  return claim.ours ? node_->Reserve(allocated.claim) : OkStatus();
}

Status Simulator::Tell(KnownClaim& claim) {
  Status status = Prepare(claim);
  AddClaim("prepare", claim.document.name, status,
           claim.ours ? "" : fmt::format("it has no device of {}", config_.dra.DriverName()));
  return status;
}

// Like a kubelet, prepares all claims of a pod before anything of the pod is created.
Status Simulator::PrepareFor(const Manifest& manifest) {
  for (const std::string& name : manifest.Claims()) {
    const auto claim = claims_.find(name);
    if (claim == claims_.end() || !claim->second.ours) continue;
    if (node_->FindClaim(claim->second.document.name.uid) != nullptr) continue;
    if (Status told = Tell(claim->second); !told.ok()) return told;
  }
  return OkStatus();
}

std::vector<std::string> Simulator::CarriedBy(const Manifest::Container& container) const {
  std::vector<std::string> uids;
  for (const std::string& name : container.claims) {
    const auto claim = claims_.find(name);
    if (claim != claims_.end() && claim->second.ours)
      uids.push_back(claim->second.document.name.uid);
  }
  return uids;
}

// Gives back the claims of a pod that has ended, except those that another pod carries, too.
void Simulator::Unprepare(const Manifest& ended) {
  for (const std::string& name : ended.Claims()) {
    const auto claim = claims_.find(name);
    if (claim == claims_.end()) continue;
    const dra::ClaimName& id = claim->second.document.name;
    if (node_->FindClaim(id.uid) == nullptr) continue;
    const bool in_use = std::ranges::any_of(pods_, [&name](const auto& pod) {
      const std::vector<std::string> claims = pod.second.manifest.Claims();
      return std::ranges::find(claims, name) != claims.end();
    });
    if (!in_use) AddClaim("unprepare", id, node_->GiveBack(id.uid), "");
  }
}

void Simulator::AddClaim(std::string op, const dra::ClaimName& claim, const Status& status,
                         std::string reason) {
  Add(std::move(op), claim.ToString(), "", {}, status);
  StepEffect& effect = effects_.back();
  effect.quota = -1;
  effect.reason = std::move(reason);
  const HeldClaim* const held = node_->FindClaim(claim.uid);
  if (held == nullptr || !status.ok()) return;
  effect.cpus = held->Cpus().ToString();
  effect.exclusive = effect.cpus;
  effect.reason = DescribeParts(*held);
  if (!held->parts.empty()) effect.pool = held->parts.front().placement.pool;
}

}  // namespace resmgr
